# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages of netlink, and the one that empties the connection table. Only the standard library."""

import errno
import os
import socket
import struct
from collections.abc import Iterator

#: linux/netlink.h and linux/netfilter/nfnetlink_conntrack.h: delete entries, and acknowledge that.
NETLINK_NETFILTER, DELETE, REQUEST_AND_ACK, ERROR = 12, 1 << 8 | 2, 1 | 4, 2
#: A message's header and that of nfnetlink.
HEADERS = struct.Struct("=IHHII BBH")
#: Length and type, with which each message and each attribute begins.
_MESSAGE, _ATTRIBUTE = struct.Struct("=IH"), struct.Struct("=HH")
#: Largest message that is read.
LARGEST = 1 << 16


def opened() -> socket.socket:
    """A socket to netfilter in this network namespace."""
    found = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    found.bind((0, 0))
    return found


def forget_connections(netlink: socket.socket) -> None:
    """Delete all entries of the connection table. Raises OSError."""
    netlink.send(HEADERS.pack(HEADERS.size, DELETE, REQUEST_AND_ACK, 1, 0, socket.AF_UNSPEC, 0, 0))
    for kind, body in messages(netlink.recv(LARGEST)):
        code = -struct.unpack_from("=i", body)[0] if kind == ERROR else 0
        if code not in (0, errno.ENOENT):
            raise OSError(code, f"the connection table cannot be emptied: {os.strerror(code)}")


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each message."""
    at, size = 0, len(data)
    while size - at >= 16:
        length, kind = _MESSAGE.unpack_from(data, at)
        if not 16 <= length <= size - at:
            return
        yield kind, data[at + 16 : at + length]
        at += (length + 3) & ~3


def attributes(data: bytes, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """Type and value of each attribute from this place on."""
    size = len(data)
    while size - at >= 4:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if not 4 <= length <= size - at:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3
