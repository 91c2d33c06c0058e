# SPDX-License-Identifier: GPL-2.0-or-later
"""The flows of traffic classes that are declared by a stream.

A flow is a source address and a destination port, the fields that rulesets match. A class may have all packets with a
source port, or a destination port, instead. The sink identifies such a class by these alone, so two classes must not
share one.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address

import numpy as np

from fwlab.model.declared_traffic import TrafficClass
from fwlab.model.errors import BadInput
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import IPV4, Headers, ipv4_numbers, read_headers

#: Source address and destination port; for a class by ports the port alone, and an empty address.
Flow = tuple[str, int]


def flow_keys(headers: Headers, wanted: TrafficClass | None = None) -> np.ndarray:
    """The flow of each frame, or its port for a class by ports, as a number; -1 without: int64 array of shape (n,)."""
    if wanted is not None and wanted.ports is not None:
        return np.asarray(headers.sport if wanted.ports == "source" else headers.dport)
    flows = ipv4_numbers(headers.src) << 16 | headers.dport
    return np.where((headers.version == IPV4) & (headers.dport >= 0), flows, -1)


def class_flows(frames: Frames, headers: Headers, classes: Mapping[str, TrafficClass]) -> dict[str, np.ndarray]:
    """The flow keys of each class that is declared by a stream, by the class's name.

    Raises BadInput if two classes share a flow, or if a frame of such a class has no flow.
    """
    found: dict[str, np.ndarray] = {}
    for name, wanted in classes.items():
        if wanted.stream is None:
            continue
        streams = [place for place, given in enumerate(frames.names) if given == wanted.stream]
        found[name] = mine = np.unique(flow_keys(headers, wanted)[np.isin(frames.stream, streams)])
        if (mine < 0).any():
            raise BadInput(
                f"stream {wanted.stream}: class {name} requires IPv4 packets with ports",
                "declare the class by addresses and ports instead",
            )
        for other in (other for other in list(found)[:-1] if classes[other].ports == wanted.ports):
            shared = np.intersect1d(mine, found[other])
            if len(shared):
                raise _shared(other, name, wanted, _flow(shared[0], wanted))
    return found


def listed_flows(frames: Frames, classes: Mapping[str, TrafficClass]) -> dict[str, list[Flow]]:
    """As class_flows, but with addresses and ports in place of keys."""
    if not any(wanted.stream for wanted in classes.values()):
        return {}
    found = class_flows(frames, read_headers(frames), classes)
    return {name: [_flow(key, classes[name]) for key in keys] for name, keys in found.items()}


def _flow(key: int, wanted: TrafficClass) -> Flow:
    source = "" if wanted.ports is not None else str(IPv4Address(int(key) >> 16))
    return source, int(key) & 0xFFFF


def _shared(other: str, name: str, wanted: TrafficClass, flow: Flow) -> BadInput:
    source, port = flow
    if wanted.ports is not None:
        message = f"classes {other} and {name} share {wanted.ports} port {port}"
        return BadInput(message, f"let only one stream use each {wanted.ports} port")
    return BadInput(
        f"classes {other} and {name} share a flow: {source} to port {port}",
        "let only one stream send each flow (source address and destination port)",
    )
