# SPDX-License-Identifier: GPL-2.0-or-later
"""The system call bpf(2) of x86-64: maps, programs and links, as numbers of open files. See linux/bpf.h.

All that is made here goes with its open file: nothing is pinned.
"""

import ctypes
import os
import struct

SYS_BPF = 321
MAP_CREATE, PROG_LOAD, MAP_UPDATE_BATCH, LINK_CREATE = 0, 5, 26, 28
HASH, ARRAY, LPM_TRIE = 1, 2, 11
NO_PREALLOC, ZERO_SEED = 1 << 0, 1 << 6
XDP_PROGRAM, AT_XDP, NATIVE = 6, 37, 1 << 2
LICENSE = b"GPL"


def call(command: int, attributes: bytes) -> int:
    """The system call. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.create_string_buffer(attributes, len(attributes))
    result = int(libc.syscall(SYS_BPF, command, given, len(attributes)))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def new_map(kind: int, key_bytes: int, value_bytes: int, most: int, flags: int) -> int:
    """A map for `most` entries."""
    return call(MAP_CREATE, struct.pack("<IIIII", kind, key_bytes, value_bytes, most, flags))


def fill(opened: int, keys: bytes, values: bytes, count: int) -> None:
    """Write `count` entries, whose keys and values follow one another."""
    kept = ctypes.create_string_buffer(keys, len(keys)), ctypes.create_string_buffer(values, len(values))
    addresses = (ctypes.addressof(text) for text in kept)
    call(MAP_UPDATE_BATCH, struct.pack("<QQQQIIQQ", 0, 0, *addresses, count, opened, 0, 0))


def load_xdp(code: bytes, name: str) -> int:
    """A program that the kernel has verified and compiled."""
    text, license_text = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(LICENSE)
    words = (XDP_PROGRAM, len(code) // 8, ctypes.addressof(text), ctypes.addressof(license_text))
    options = (0, 0, 0, 0, 0, name.encode(), 0, AT_XDP)  # no log, no flags, no other device
    return call(PROG_LOAD, struct.pack("<IIQQIIQII16sII", *words, *options))


def attach_xdp(program: int, device: int) -> int:
    """Run the program in the driver of this device, until the link that is returned is closed."""
    return call(LINK_CREATE, struct.pack("<IIII", program, device, AT_XDP, NATIVE))
