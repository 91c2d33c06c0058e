# SPDX-License-Identifier: GPL-2.0-or-later
"""lab07: the order of packets that a full table depends on, and the formula that its page explains."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from fwlab.generator.traffic_profile import load_profile
from fwlab.metrics.delivery import FIRST_PACKETS
from fwlab.traffic.expand import expand
from tests.checkout import PROJECT, lab_named

LAB = lab_named("lab07-stateless")
#: Packets that the DUT looks up before it enters any of them.
BATCH = 64
SYN, ACK, FIN = 0x02, 0x10, 0x01
HANDSHAKE = (SYN, SYN | ACK, ACK)


def frames(traffic: str, limit: int = 12_000) -> list[tuple[str, int, str]]:
    """Of each frame: client and its port as text, the TCP flags (0 for UDP), and the name of its stream."""
    declared = LAB.traffic[traffic]
    profile = LAB.profile(traffic)
    assert profile is not None
    made = expand(load_profile(PROJECT, profile, dict(declared.tunables)), limit=limit)
    found = []
    for frame, stream in zip(made.matrix(54), made.stream, strict=True):
        raw = bytes(frame)
        out = raw[36:38] == (443).to_bytes(2, "big")
        client = raw[26:30] + raw[34:36] if out else raw[30:34] + raw[36:38]
        found.append((client.hex(), raw[47] if raw[23] == 6 else 0, str(made.names[stream])))
    return found


@pytest.mark.parametrize("traffic", ["flood", "botnet", "established"])
def test_newcomers_come_first_and_once(traffic: str) -> None:
    """`passed` plays this many packets: all of them are newcomers' (or members'), and no two of one connection."""
    first = frames(traffic, FIRST_PACKETS)
    assert len({client for client, _flags, _name in first}) == FIRST_PACKETS
    assert {flags for _client, flags, _name in first} <= {0, SYN}


@pytest.mark.parametrize("traffic", ["botnet", "established", "closed"])
def test_a_connection_keeps_its_order_and_never_lies_in_one_batch(traffic: str) -> None:
    places, said = defaultdict(list), defaultdict(list)
    for place, (client, flags, name) in enumerate(frames(traffic)[FIRST_PACKETS:]):
        if not name.startswith("intruders"):
            places[client].append(place)
            said[client].append(flags)
    assert all(tuple(flags[:3]) == HANDSHAKE[: len(flags[:3])] for flags in said.values())
    gaps = [b - a for each in places.values() for a, b in pairwise(each)]
    assert min(gaps) > BATCH


def test_a_client_s_port_does_not_tell_whose_it_is() -> None:
    """Newcomers, members and latecomers use the ports of the residents, and most of them."""
    played = frames("botnet", 31_640)
    ports = {
        who: {client[8:] for client, _flags, name in played if name.startswith(who)}
        for who in ("newcomers", "members", "latecomers", "residents")
    }
    residents = ports.pop("residents")
    assert all(theirs <= residents and len(theirs) > len(residents) / 2 for theirs in ports.values())


@pytest.mark.parametrize("exercise", ["ex1-buckets", "ex2-assured"])
def test_residents_are_more_than_the_table_holds(exercise: str) -> None:
    declared = next(one for one in LAB.exercises if one.id == exercise)
    room = {"ex1-buckets": 4096, "ex2-assured": 8192}[exercise]
    assert declared.state_packets is not None
    played = frames(declared.traffic, declared.state_packets)
    assert len(played) == declared.state_packets
    assert len({client for client, _flags, _name in played[FIRST_PACKETS:]}) > room
