# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that lab traffic goes only to addresses reserved for benchmarking (RFC 2544, RFC 5180)."""

import ipaddress

import numpy as np

from fwlab.model.errors import BadInput
from fwlab.traffic.classes import within
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import IPV4, read_headers

LAB_PREFIXES = ("198.18.0.0/15", "2001:2::/48")
#: Sources only: hosts of blacklists that are longer than the lab's networks. Nothing can answer them outside, because
#: the nodes' only other network is QEMU's own, and restricted.
LISTED_PREFIXES = ("10.0.0.0/8",)
_MULTICAST = ("224.0.0.0/4", "ff00::/8")
_HINT = "use addresses in " + " or ".join(LAB_PREFIXES)


def check_addresses(frames: Frames) -> None:
    """Raises BadInput naming stream, frame and address if an IP address is outside the lab's prefixes, or if a
    destination (IP or Ethernet) is a multicast address. A source may also be one that blacklists name."""
    headers = read_headers(frames)
    if not len(frames):
        return

    def among(addresses: np.ndarray, prefixes: tuple[str, ...]) -> np.ndarray:
        return np.asarray(np.any([within(headers.version, addresses, prefix) for prefix in prefixes], axis=0))

    has_ip = headers.version != 0
    for what, addresses, wrong, kind in (
        ("destination", headers.dst, among(headers.dst, _MULTICAST), "is a multicast address"),
        ("source", headers.src, has_ip & ~among(headers.src, LAB_PREFIXES + LISTED_PREFIXES), "is not a lab address"),
        ("destination", headers.dst, has_ip & ~among(headers.dst, LAB_PREFIXES), "is not a lab address"),
    ):
        if wrong.any():
            at = int(wrong.argmax())
            size = 4 if headers.version[at] == IPV4 else 16
            address = ipaddress.ip_address(addresses[at][:size].tobytes())
            raise BadInput(f"{_label(frames, at)}: {what} {address} {kind}", _HINT)
    if headers.group_mac.any():
        at = int(headers.group_mac.argmax())
        mac = frames[at][:6].hex(":")
        raise BadInput(
            f"{_label(frames, at)}: destination {mac} is a multicast address",
            "remove the Ethernet destination from the profile",
        )


def _label(frames: Frames, at: int) -> str:
    return f"{frames.labels[int(frames.stream[at])]}, frame {at + 1}"
