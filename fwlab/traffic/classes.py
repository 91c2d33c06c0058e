# SPDX-License-Identifier: GPL-2.0-or-later
"""Assigns frames to a lab's traffic classes. The sink counts by the same rules."""

import ipaddress
from collections.abc import Mapping

import numpy as np

from fwlab.model.declared_traffic import TrafficClass
from fwlab.traffic.flows import carries, counted_at, members, stream_classes
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import IPV4, IPV6, Headers, ipv4_numbers, read_headers

#: Name of the count of frames that belong to no declared class.
OTHER = "other"

_PROTOCOLS = {"udp": (17, 17), "tcp": (6, 6), "icmp": (1, 58)}


def classify(frames: Frames, classes: Mapping[str, TrafficClass]) -> np.ndarray:
    """The index of the first class that matches each frame, or -1: int64 array of shape (n,)."""
    headers = read_headers(frames)
    told = stream_classes(frames, classes)
    found = np.full(len(frames), -1, dtype=np.int64)
    for place, (name, wanted) in enumerate(classes.items()):
        if name in told:
            fits = members(frames, headers, wanted, told[name]) & counted_at(frames, classes, wanted.at)
        else:
            fits = _fits(headers, wanted)
            if wanted.payload is not None and wanted.payload.at is not None:
                fits &= carries(
                    frames, headers, wanted.payload.at, [bytes.fromhex(data) for data in wanted.payload.hex]
                )
        found[(found < 0) & fits] = place
    return found


def count_classes(frames: Frames, classes: Mapping[str, TrafficClass]) -> dict[str, int]:
    """The number of frames of each class, in the order of the classes, then of those without a class ("other")."""
    found = classify(frames, classes)
    counts = {name: int((found == place).sum()) for place, name in enumerate(classes)}
    return {**counts, OTHER: int((found < 0).sum())}


def _fits(headers: Headers, wanted: TrafficClass) -> np.ndarray:
    fits: np.ndarray = headers.version != 0
    for prefix, addresses in ((wanted.src, headers.src), (wanted.dst, headers.dst)):
        if prefix is not None:
            fits &= within(headers.version, addresses, prefix)
    for listed, addresses in ((wanted.sources, headers.src), (wanted.destinations, headers.dst)):
        if listed is not None:
            fits &= (headers.version == IPV4) & np.isin(ipv4_numbers(addresses), np.array(listed.numbers()))
    if wanted.dports:
        pairs = np.array([source << 16 | port for source, port in wanted.pairs()])
        fits &= np.isin(ipv4_numbers(headers.src) << 16 | headers.dport, pairs) & (headers.dport >= 0)
    if wanted.proto is not None:
        four, six = _PROTOCOLS[wanted.proto]
        fits &= headers.protocol == np.where(headers.version == IPV4, four, six)
    for ports, values in ((wanted.sport, headers.sport), (wanted.dport, headers.dport)):
        if ports is not None:
            low, high = port_range(ports)
            fits &= (values >= low) & (values <= high)
    return fits


def port_range(ports: int | str) -> tuple[int, int]:
    """A port, or a range "lowest-highest", as two numbers."""
    low, _, high = str(ports).partition("-")
    return int(low), int(high or low)


def within(version: np.ndarray, addresses: np.ndarray, prefix: str) -> np.ndarray:
    """Which of the addresses (as in Headers) lie within the prefix: bool array of shape (n,)."""
    network = ipaddress.ip_network(prefix, strict=False)
    size = network.max_prefixlen // 8
    base = np.frombuffer(network.network_address.packed, dtype=np.uint8)
    mask = np.frombuffer(network.netmask.packed, dtype=np.uint8)
    same = ((addresses[:, :size] & mask) == base).all(axis=1)
    return np.asarray(same & (version == (IPV4 if network.version == 4 else IPV6)))
