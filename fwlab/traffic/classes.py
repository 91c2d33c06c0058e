# SPDX-License-Identifier: GPL-2.0-or-later
"""Assigns frames to a lab's traffic classes. The sink counts by the same rules.

A class is declared by header fields, or by a stream of the profile. A stream's packets are recognised by their flows,
that is source address, destination port and protocol, the fields that rulesets match; or by the source or the
destination address alone; or by bytes of the payload. The sink recognises such a class by these alone, so the packets
of another class's stream must not have them.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from fwlab.model.declared_traffic import TrafficClass
from fwlab.model.errors import BadInput
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import IPV4, IPV6, Headers, ipv4_numbers, read_headers, within

#: Name of the count of frames that belong to no declared class.
OTHER = "other"
#: A source address, a destination port and a protocol's number; an address; or a place in the payload and the bytes
#: there, in hexadecimal.
Flow = tuple[str | int, ...]

_Numbers = TypeVar("_Numbers", int, np.ndarray)
#: Bytes of an IPv6 address, and of a flow over IPv6: address, destination port, protocol.
_ADDRESS_V6, _FLOW_V6 = 16, 19
_PROTOCOLS = {"udp": (17, 17), "tcp": (6, 6), "icmp": (1, 58)}


def classify(
    frames: Frames, classes: Mapping[str, TrafficClass], flows: Mapping[str, list[Flow]] | None = None
) -> np.ndarray:
    """The index of the first class that matches each frame, or -1: int64 array of shape (n,).

    flows  what `stream_flows` found, where that is known
    """
    headers = read_headers(frames)
    flows = stream_flows(frames, classes) if flows is None else flows
    counted = {end: counted_at(frames, classes, end) for end in {wanted.at for wanted in classes.values()}}
    found = np.full(len(frames), -1, dtype=np.int64)
    for place, (name, wanted) in enumerate(classes.items()):
        if name in flows:
            fits = members(frames, headers, wanted, flows[name]) & counted[wanted.at]
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


def stream_flows(frames: Frames, classes: Mapping[str, TrafficClass]) -> dict[str, list[Flow]]:
    """The flows of each class that is declared by a stream, by the class's name; none if the stream is absent.

    Raises BadInput if a packet of the stream has no flow, or one of a class that is declared before.
    """
    owned = {name: _owned(frames, wanted.stream) for name, wanted in classes.items() if wanted.stream is not None}
    if not owned:
        return {}
    headers = read_headers(frames)
    flows = {name: _identify(frames, headers, mine, name, classes[name]) for name, mine in owned.items()}
    for place, name in enumerate(flows):
        fits = members(frames, headers, classes[name], flows[name])
        for later in (other for other in list(flows)[place + 1 :] if classes[other].at == classes[name].at):
            shared = np.flatnonzero(fits & owned[later])
            if len(shared):
                raise BadInput(
                    f"frame {shared[0] + 1}, of the class {later}, also belongs to the class {name}",
                    "give the streams of different classes different addresses, ports or payloads",
                )
    return flows


def members(frames: Frames, headers: Headers, wanted: TrafficClass, flows: list[Flow]) -> np.ndarray:
    """Which frames belong to the class with these flows: bool array of shape (n,)."""
    if wanted.payload is None:
        numbers = [[_number(str(address)), *map(int, rest)] for address, *rest in flows if not _of_ipv6(str(address))]
        keys = [_key(*flow) if wanted.address is None else flow[0] for flow in numbers]
        found = np.isin(flow_keys(headers, wanted), np.array(keys, dtype=np.int64))
        six = [_bytes_of(flow) for flow in flows if _of_ipv6(str(flow[0]))]
        return found | np.isin(flow_bytes(headers, wanted), np.array(six, dtype="S")) if six else found
    found = np.zeros(len(frames), dtype=bool)
    for at in {int(at) for at, _ in flows}:
        found |= carries(frames, headers, at, [bytes.fromhex(str(data)) for place, data in flows if place == at])
    return found


def flow_keys(headers: Headers, wanted: TrafficClass) -> np.ndarray:
    """The IPv4 flow of each frame, or its class's address, as a number, or -1: int64 array of shape (n,)."""
    if wanted.address is not None:
        addresses = ipv4_numbers(headers.src if wanted.address == "source" else headers.dst)
        return np.where(headers.version == IPV4, addresses, -1)
    flows = _key(ipv4_numbers(headers.src), headers.dport, headers.protocol)
    return np.where((headers.version == IPV4) & (headers.dport >= 0), flows, -1)


def flow_bytes(headers: Headers, wanted: TrafficClass) -> np.ndarray:
    """The IPv6 flow of each frame, or its class's address; nothing if it has none: bytes array of shape (n,)."""
    six = headers.version == IPV6
    if wanted.address is not None:
        keys = np.where(six[:, np.newaxis], headers.src if wanted.address == "source" else headers.dst, np.uint8(0))
        return np.ascontiguousarray(keys).view(f"S{_ADDRESS_V6}")[:, 0]
    keys = np.zeros((len(six), _FLOW_V6), dtype=np.uint8)
    rows = np.flatnonzero(six & (headers.dport >= 0))
    keys[rows, :_ADDRESS_V6], keys[rows, -1] = headers.src[rows], headers.protocol[rows]
    keys[rows, _ADDRESS_V6], keys[rows, _ADDRESS_V6 + 1] = headers.dport[rows] >> 8, headers.dport[rows] & 0xFF
    return keys.view(f"S{_FLOW_V6}")[:, 0]


def _of_ipv6(address: str) -> bool:
    return ":" in address


def _bytes_of(flow: Flow) -> bytes:
    """What `flow_bytes` gives of this flow."""
    address, *rest = flow
    port, protocol = (int(number) for number in rest) if rest else (0, 0)
    after = port.to_bytes(2, "big") + bytes([protocol]) if rest else b""
    return ipaddress.IPv6Address(str(address)).packed + after


def _flows_of(keys: np.ndarray) -> Iterator[Flow]:
    """The flows of which `flow_bytes` gave these. NumPy strips the zeros at the end of each."""
    for key in keys.tolist():
        address = str(ipaddress.IPv6Address(key[:_ADDRESS_V6].ljust(_ADDRESS_V6, b"\0")))
        rest = key[_ADDRESS_V6:]
        yield (address, int.from_bytes(rest[:2], "big"), rest[2]) if rest else (address,)


def _key(address: _Numbers, port: _Numbers, protocol: _Numbers) -> _Numbers:
    """A flow as one number."""
    return address << 24 | port << 8 | protocol  # type: ignore[no-any-return]


def _address(number: int) -> str:
    """An IPv4 address as text. A traffic has tens of thousands, and ipaddress takes ten times as long."""
    return f"{number >> 24}.{number >> 16 & 0xFF}.{number >> 8 & 0xFF}.{number & 0xFF}"


def _number(address: str) -> int:
    """The number of an IPv4 address that `_address` wrote."""
    first, second, third, fourth = map(int, address.split("."))
    return first << 24 | second << 16 | third << 8 | fourth


def carries(frames: Frames, headers: Headers, at: int, wanted: list[bytes]) -> np.ndarray:
    """Which frames have any of these bytes at this place of their UDP payload: bool array of shape (n,)."""
    found = np.zeros(len(frames), dtype=bool)
    for size in {len(data) for data in wanted}:
        # Of one size, so that it does not matter that NumPy strips zeros from the end.
        listed = np.array([data for data in wanted if len(data) == size], dtype=f"S{size}")
        rows, there = _bytes_at(frames, headers, at, size)
        found[rows] |= np.isin(there, listed)
    return found


def _bytes_at(frames: Frames, headers: Headers, at: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the frames that have `size` bytes at this place of their UDP payload, and the bytes."""
    begin = headers.payload + at
    rows = np.flatnonzero((headers.payload > 0) & (begin + size <= frames.lengths))
    return rows, frames.pieces(rows, begin[rows], size).view(f"S{size}")[:, 0]


def counted_at(frames: Frames, classes: Mapping[str, TrafficClass], end: str) -> np.ndarray:
    """Which frames may be counted at this end: all but those of a class that is counted at the other one."""
    elsewhere = [_owned(frames, c.stream) for c in classes.values() if c.stream is not None and c.at != end]
    return ~np.asarray(np.any([np.zeros(len(frames), dtype=bool), *elsewhere], axis=0))


def _owned(frames: Frames, wanted: str) -> np.ndarray:
    """Which frames are of this stream, or of one of several that make it up: `visitors 1`, `visitors 2`."""
    names = [str(named) for named in frames.names]
    streams = [at for at, named in enumerate(names) if f"{named} ".startswith(f"{wanted} ")]
    return np.asarray(np.isin(frames.part_stream, streams)[frames.part])


def _identify(frames: Frames, headers: Headers, mine: np.ndarray, name: str, wanted: TrafficClass) -> list[Flow]:
    """The flows of these frames. Raises BadInput if a frame has none."""
    if wanted.payload is not None:
        return _identify_by_payload(frames, headers, mine, name, wanted)
    four, six = flow_keys(headers, wanted)[mine], flow_bytes(headers, wanted)[mine]
    if ((four < 0) & (six == b"")).any():
        what = "IP packets" if wanted.address else "IP packets with ports"
        raise BadInput(f"stream {wanted.stream}: class {name} requires {what}", "declare it by addresses and ports")
    keys, others = np.unique(four[four >= 0]), list(_flows_of(np.unique(six[six != b""])))
    if wanted.address is not None:
        return [*((_address(key),) for key in keys.tolist()), *others]
    return [*((_address(key >> 24), key >> 8 & 0xFFFF, key & 0xFF) for key in keys.tolist()), *others]


def _identify_by_payload(
    frames: Frames, headers: Headers, mine: np.ndarray, name: str, wanted: TrafficClass
) -> list[Flow]:
    """The bytes at the declared place; or the places of the declared bytes, the first one in each frame."""
    payload = wanted.payload
    assert payload is not None  # noqa: S101 - the caller's mistake
    if payload.at is not None and payload.size is not None:
        rows, there = _bytes_at(frames, headers, payload.at, payload.size)
        if np.count_nonzero(mine[rows]) < np.count_nonzero(mine):
            raise BadInput(f"stream {wanted.stream}: class {name} requires a longer UDP payload", "make it longer")
        found = {bytes(data).ljust(payload.size, b"\0") for data in np.unique(there[mine[rows]])}
        return [(payload.at, data.hex()) for data in sorted(found)]
    data, places = bytes.fromhex(payload.hex[0]), set[int]()
    for row in np.flatnonzero(mine):
        place = frames[int(row)].find(data, int(headers.payload[row])) - int(headers.payload[row])
        if not 0 <= place <= payload.MAX_AT:
            what = f"stream {wanted.stream}: class {name} requires its bytes within the sink's reach"
            raise BadInput(what, f"put them into the first {payload.MAX_AT} bytes of each payload")
        places.add(place)
    return [(place, payload.hex[0]) for place in sorted(places)]
