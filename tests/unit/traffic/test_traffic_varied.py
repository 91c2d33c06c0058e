# SPDX-License-Identifier: GPL-2.0-or-later
"""Header fields that no exercise is about: a seed draws them, nothing else changes, and no checksum becomes wrong."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet import fragment as fragments_of
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from fwlab.generator.traffic_store import TrafficStore
from fwlab.generator.trex.engine import server_streams, varies_all
from fwlab.traffic import Frames, expand
from fwlab.traffic.frame_loop import build_table
from fwlab.traffic.varied import MIN_TTL, TTLS, varied
from tests.checkout import PROJECT, TOPOLOGY, lab_named
from tests.fakes.traffic_forms import one_each

#: UDP, a train of TCP, IPv6, options in the IP header, connections from their first segment on, wrong checksums of TCP.
TRAFFIC = [
    ("lab03-ipset", "attack"),
    ("lab01-forwarding", "everything"),
    ("lab01-forwarding", "udp6-checked"),
    ("lab06-payload", "place"),
    ("lab07-stateless", "established"),
    ("lab02-conntrack", "known-tcp"),
]
MAX_FRAMES = 160


@cache
def store(lab: str, seed: int, first: int | None = MAX_FRAMES) -> TrafficStore:
    """Tables of the first frames."""
    return TrafficStore(PROJECT, TOPOLOGY, lab_named(lab), seed, first=first)


def first_frames(frames: Frames) -> list[bytes]:
    return [frames[place] for place in range(min(MAX_FRAMES, len(frames)))]


def after(lab: str, traffic: str, seed: int) -> list[bytes]:
    return first_frames(store(lab, seed).table(traffic).frames)


def packets(lab: str, traffic: str) -> list[Packet]:
    return [Ether(frame) for frame in store(lab, 1, 10 * MAX_FRAMES).table(traffic).frames]


def recomputed(frame: bytes) -> bytes:
    packet = Ether(frame)
    for layer in (IP, TCP):
        if layer in packet:
            del packet[layer].chksum
    return bytes(packet)


def undrawn(frame: bytes) -> bytes:
    """The frame with zeros where a seed draws, and in the checksums that depend on it."""
    packet = Ether(frame)
    if IP in packet:
        packet[IP].id = packet[IP].ttl = packet[IP].chksum = 0
    if IPv6 in packet:
        packet[IPv6].fl = packet[IPv6].hlim = 0
    if TCP in packet:
        packet[TCP].seq = packet[TCP].ack = packet[TCP].chksum = 0
    return bytes(packet)


@pytest.mark.parametrize(("lab", "traffic"), TRAFFIC)
def test_only_these_fields_change_by_the_seed_and_checksums_follow(lab: str, traffic: str) -> None:
    streams = store(lab, 3).streams(traffic)
    old = first_frames(build_table(streams, macs=store(lab, 3)._macs, seed=3, first=MAX_FRAMES).frames)
    new, other = (after(lab, traffic, seed) for seed in (3, 4))
    assert [undrawn(frame) for frame in new] == [undrawn(frame) for frame in old]
    assert [recomputed(frame) == frame for frame in new] == [recomputed(frame) == frame for frame in old]
    store.cache_clear()
    assert after(lab, traffic, 3) == new
    assert not set(new) & set(other)


def test_numbers_and_ttls_have_no_pattern() -> None:
    headers = [packet[IP] for packet in packets("lab03-ipset", "attack")]
    assert len({header.id for header in headers}) > 0.8 * len(headers)
    ttls = [header.ttl for header in headers]
    assert set(ttls) == set(range(MIN_TTL, MIN_TTL + TTLS))
    [(often, _)] = Counter(header.src for header in headers).most_common(1)
    assert len({header.chksum for header in headers if header.src == often}) > 1
    headers = [packet[IPv6] for packet in packets("lab01-forwarding", "udp6-checked")]
    assert len({header.fl for header in headers}) > 0.9 * len(headers)
    assert len({header.hlim for header in headers}) > TTLS / 2


def test_a_train_of_segments_can_still_be_merged() -> None:
    found = packets("lab01-forwarding", "everything")
    train = [packet for packet in found if TCP in packet and packet[IP].dst == "198.19.208.1"]
    begins = [place for place, packet in enumerate(train) if packet[TCP].seq == train[0][TCP].seq]
    assert begins == list(range(0, len(train), 16))
    for begin in begins[:20]:
        segments = train[begin : begin + 16]
        assert len({packet[IP].ttl for packet in segments}) == 1
        assert {(after[IP].id - one[IP].id) % 65536 for one, after in itertools.pairwise(segments)} == {1}
    assert len({train[begin][IP].id for begin in begins}) > 1


def test_fragments_of_a_datagram_still_belong_together() -> None:
    """Of several datagrams, one behind two tags; each has a number of its own, which differs from seed to seed."""
    four, six = {"src": "198.18.1.1", "dst": "198.19.1.1"}, {"src": "2001:2::1", "dst": "2001:2::2"}
    whole = [Ether() / IP(**four, id=number) / UDP() / bytes(64) for number in (1, 2, 1)]
    whole[1] = Ether() / Dot1Q() / Dot1Q() / IP(**four, id=2) / UDP() / bytes(64)
    found = [fragment for packet in whole[:2] for fragment in fragments_of(packet, 32)]
    header = IPv6(**six) / IPv6ExtHdrFragment(id=0xFFFFFFFF, m=1, nh=17)
    found += [Ether() / header / bytes(16), Ether() / IPv6(**six) / IPv6ExtHdrFragment(id=0xFFFFFFFF, offset=2, nh=17)]
    sent = one_each(*((f"s{place}", packet) for place, packet in enumerate([*found, whole[2]])))
    packets = [Ether(frame) for frame in varied(sent, 1)]
    numbers = [(packet[IP].id, packet[IP].ttl) for packet in packets if IP in packet]
    count = len(found) // 2 - 1
    assert len(set(numbers[:count])) == len(set(numbers[count : 2 * count])) == 1
    assert len({numbers[0], numbers[count], numbers[-1]}) == 3
    assert all(recomputed(bytes(packet)) == bytes(packet) for packet in packets)
    one, other = (packet[IPv6] for packet in packets if IPv6 in packet)
    assert (one.fl, one.hlim) == (other.fl, other.hlim)
    assert one[IPv6ExtHdrFragment].id == other[IPv6ExtHdrFragment].id == 0xFFFFFFFF
    assert Ether(varied(sent, 2)[0])[IP].id != numbers[0][0]


def test_both_ends_of_a_connection_agree() -> None:
    found: dict[bytes, list[bytes]] = {}
    for frame in list(store("lab07-stateless", 1, None).table("established").frames)[960:]:
        answers = frame[47] == 0x12  # SYN and ACK
        client = frame[30:34] + frame[36:38] if answers else frame[26:30] + frame[34:36]
        found.setdefault(client, []).append(frame)
    syn, answer, last = (Ether(frame)[TCP] for frame in found.popitem()[1])
    assert (syn.flags, answer.flags, last.flags) == ("S", "SA", "A")
    assert answer.ack == last.seq == (syn.seq + 1) % 2**32
    assert last.ack == (answer.seq + 1) % 2**32
    assert syn.seq != Ether(found.popitem()[1][0])[TCP].seq


def test_frames_without_ip_stay_as_they_are() -> None:
    streams = store("lab03-ipset", 1).streams("flood")
    frames = expand(streams, limit=3)
    frames.parts[0].data[:, 12:14] = 0x08, 0x06
    assert list(varied(frames, 1)) == list(frames)


@pytest.mark.parametrize(
    ("lab", "traffic"), [("lab03-ipset", "attack"), ("lab06-payload", "place"), ("lab01-forwarding", "udp6-checked")]
)
def test_trex_draws_the_same_fields(lab: str, traffic: str) -> None:
    streams: list[Any] = [item["stream"] for item in server_streams(store(lab, 1).streams(traffic))]
    found = [Ether(frame) for frame in expand(streams, limit=MAX_FRAMES, complete=True)]
    headers = [(p[IP].id, p[IP].ttl) if IP in p else (p[IPv6].fl, p[IPv6].hlim) for p in found]
    assert len({number for number, _ in headers}) > 0.9 * MAX_FRAMES
    hops = {hop for _, hop in headers}
    assert len(hops) > TTLS / 2
    assert min(hops) >= MIN_TTL
    assert max(hops) < MIN_TTL + TTLS
    assert all(recomputed(bytes(packet)) == bytes(packet) for packet in found)


def test_trex_does_not_number_segments() -> None:
    assert varies_all(store("lab03-ipset", 1).streams("attack"))
    assert not varies_all(store("lab04-nftables", 1).streams("segments"))
