# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that lab traffic uses only the addresses reserved for benchmarking (RFC 2544, RFC 5180)."""

import ipaddress

import numpy as np

from fwlab.model.errors import BadInput
from fwlab.traffic.classes import within
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import IPV4, read_headers

LAB_PREFIXES = ("198.18.0.0/15", "2001:2::/48")
_MULTICAST = ("224.0.0.0/4", "ff00::/8")
_HINT = "use addresses in " + " or ".join(LAB_PREFIXES)


def check_addresses(frames: Frames) -> None:
    """Raises BadInput naming stream, frame and address if an IP address is outside the lab's prefixes, or if a
    destination (IP or Ethernet) is a multicast address."""
    headers = read_headers(frames)
    if not len(frames):
        return
    groups = np.zeros(len(frames), dtype=bool)
    for prefix in _MULTICAST:
        groups |= within(headers.version, headers.dst, prefix)
    if groups.any():
        at = int(groups.argmax())
        address = _text(int(headers.version[at]), headers.dst[at])
        raise BadInput(f"{_label(frames, at)}: destination {address} is a multicast address", _HINT)
    for what, addresses in (("source", headers.src), ("destination", headers.dst)):
        stray = headers.version != 0
        for prefix in LAB_PREFIXES:
            stray &= ~within(headers.version, addresses, prefix)
        if stray.any():
            at = int(stray.argmax())
            address = _text(int(headers.version[at]), addresses[at])
            raise BadInput(f"{_label(frames, at)}: {what} {address} is not a lab address", _HINT)
    if headers.group_mac.any():
        at = int(headers.group_mac.argmax())
        mac = frames[at][:6].hex(":")
        raise BadInput(
            f"{_label(frames, at)}: destination {mac} is a multicast address",
            "remove the Ethernet destination from the profile",
        )


def _label(frames: Frames, at: int) -> str:
    return f"{frames.labels[int(frames.stream[at])]}, frame {at + 1}"


def _text(version: int, address: np.ndarray) -> str:
    return str(ipaddress.ip_address(address[: 4 if version == IPV4 else 16].tobytes()))
