# SPDX-License-Identifier: GPL-2.0-or-later
"""Lab addresses, and the frame table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from fwlab.model.errors import BadInput
from fwlab.traffic import expand
from fwlab.traffic.frame_loop import build_table, check_addresses
from tests.fakes.traffic_forms import burst, continuous, one_each, packet, stream, variable, write

MAC = Ether(dst="00:00:00:01:00:00", src="00:00:00:02:00:00")


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (IP(src="11.0.0.1", dst="198.19.1.1"), "source 11.0.0.1 is not a lab address"),
        (IP(src="198.18.0.1", dst="8.8.8.8"), "destination 8.8.8.8 is not a lab address"),
        (IP(src="198.18.0.1", dst="198.20.0.0"), "destination 198.20.0.0 is not a lab address"),
        (IP(src="198.18.0.1", dst="224.0.0.5"), "destination 224.0.0.5 is a multicast address"),
        (IPv6(src="2001:2:1::1", dst="2001:2::1"), "source 2001:2:1::1 is not a lab address"),
        (IPv6(src="2001:2::1", dst="ff02::1"), "destination ff02::1 is a multicast address"),
        (Dot1Q(vlan=3) / IP(src="198.18.0.1", dst="9.9.9.9"), "destination 9.9.9.9 is not a lab address"),
    ],
)
def test_addresses_outside_the_lab_are_refused(layer, message):
    with pytest.raises(BadInput) as error:
        check_addresses(one_each((None, packet()), (None, MAC / layer / UDP())))
    assert error.value.message == f"stream 2, frame 2: {message}"
    assert error.value.hint == "use addresses in 198.18.0.0/15 or 2001:2::/48"


def test_a_variable_that_leaves_the_labs_addresses_is_refused():
    form = stream(variable(low=0x0001, high=0xFFFF), write(at=26), name="flood")
    with pytest.raises(BadInput, match=r"^stream 1 \(flood\), frame 1: source 0\.1\.0\.9 is not a lab address"):
        check_addresses(expand([form], limit=10))


def test_a_multicast_mac_address_is_refused():
    with pytest.raises(BadInput) as error:
        check_addresses(expand([stream(flags=2, data=b"\xff" * 6 + packet()[6:])], limit=1))
    assert error.value.message == "stream 1, frame 1: destination ff:ff:ff:ff:ff:ff is a multicast address"


def chained(name: str, packets: int, after: str | None = None, **fields: Any) -> dict[str, Any]:
    return stream(mode=burst(packets), name=name, next=after, **fields)


LONG = [variable("a", high=499), variable("b", high=500), write("a"), write("b", at=46)]


@pytest.mark.parametrize(
    ("streams", "frames", "exact"),
    [
        ([stream()], 1, True),
        ([stream(variable(high=100), write(), variable("w", high=40), write("w", at=46))], 200, True),
        ([stream(variable(op="random", high=60000), write())], 1000, False),
        ([stream(*LONG)], 1000, False),
        ([stream(variable("a", high=10, next_var="b"), variable("b", high=7), write("a"))], 70, True),
        ([chained("a", 3, "b"), chained("b", 2, self_start=False)], 5, True),
        ([chained("a", 3, "a", isg=1.0)], 1000, False),
    ],
    ids=["one", "period", "random", "cut", "chain of variables", "profile that ends", "endless bursts"],
)
def test_a_table_holds_one_loop_or_what_fits(streams: list[dict[str, Any]], frames: int, exact: bool) -> None:
    table = build_table(streams, max_frames=1000)
    assert (len(table.frames), table.exact) == (frames, exact)
    assert table.loop_ns > int(table.frames.times_ns[-1])


def test_a_loop_keeps_the_proportion_of_streams_and_all_their_values():
    fast = stream(variable(high=30), write(), mode=continuous(900))
    slow = stream(variable(high=4), write(), mode=continuous(100), isg=5e6)
    table = build_table([fast, slow])
    assert table.exact
    assert table.loop_ns == 200_000_000
    assert Counter(table.frames.stream.tolist()) == {0: 180, 1: 20}
    values = Counter(
        int.from_bytes(f[44:46], "big") for f, s in zip(table.frames, table.frames.stream, strict=True) if s
    )
    assert values == {1: 5, 2: 5, 3: 5, 4: 5}


SLOW = stream(variable("src", high=1000), write("src"), mode=continuous(10))


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ([stream(mode=burst(70_000))], "the profile sends more frames than the table holds (65536)"),
        (
            [stream(variable("src", high=100_000, size=4), write("src", at=38))],
            "stream 1: 100000 values of 'src' need 100000 frames, but the table holds 65536",
        ),
        ([stream(), SLOW], "stream 2: 1000 values of 'src' need 101000 frames, but the table holds 65536"),
        ([stream(flags=8)], "the profile sends nothing"),
    ],
)
def test_too_many_frames_are_refused(streams: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(BadInput) as error:
        build_table(streams)
    assert error.value.message == message


@pytest.mark.parametrize(("limit", "frames", "exact"), [(1000, 1000, True), (100_000, 65_536, False)])
def test_repeatable_random_values_may_be_cut(limit, frames, exact):
    dice = {"type": "flow_var_rand_limit", "name": "v", "size": 4, "limit": limit, "seed": 1}
    form = stream({**dice, "min_value": 0, "max_value": 99}, write(at=42))
    table, again = build_table([form]), build_table([form])
    assert (len(table.frames), table.exact) == (frames, exact)
    assert list(table.frames) == list(again.frames)
    assert {int.from_bytes(frame[42:46], "big") for frame in table.frames} == set(range(100))
