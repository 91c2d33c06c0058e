# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's configuration from topology.yml, and its streams from profiles."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fwlab.generator.traffic_store import TrafficStore
from fwlab.generator.trex.engine import counted_streams, server_streams
from fwlab.generator.trex.server import TrexHost, trex_config, uses_dpdk
from fwlab.model.errors import BadInput
from tests.checkout import PROJECT, TOPOLOGY, lab_named
from tests.fakes.traffic_forms import burst, continuous, stream

BIG = TrexHost(cpus=6, memory_mib=8192, pci="0000:00:03.0")


def config(machine: TrexHost) -> dict[str, Any]:
    [settings] = yaml.safe_load(trex_config(TOPOLOGY, machine))
    return settings


def test_a_large_machine_uses_dpdk() -> None:
    settings = config(BIG)
    assert settings["interfaces"] == ["00:03.0", "dummy"]
    assert "low_end" not in settings
    platform = settings["platform"]
    threads = platform["dual_if"][0]["threads"]
    assert len(threads) == settings["c"] == 4
    assert sorted([platform["master_thread_id"], platform["latency_thread_id"], *threads]) == list(range(6))


@pytest.mark.parametrize(
    "machine",
    [
        TrexHost(1, 8192, BIG.pci),  # one core spins and nobody else runs
        TrexHost(2, 8192, BIG.pci),  # none is left to send
        TrexHost(6, 2048, BIG.pci),  # no room for huge pages
        TrexHost(6, 8192, None),  # no device to drive
    ],
)
def test_a_small_machine_sends_through_the_kernel(machine: TrexHost) -> None:
    assert not uses_dpdk(machine)
    settings, ends = config(machine), TOPOLOGY.links["generator-dut"].ends
    assert settings["interfaces"] == [ends["generator"].dev, "dummy"]
    assert settings["port_info"][0] == {"src_mac": ends["generator"].mac, "dest_mac": ends["dut"].mac}
    assert len(settings["port_info"]) == 2
    assert (settings["low_end"], settings["c"]) == (True, 1)
    assert "platform" not in settings


def steady(pps: float, **fields: Any) -> dict[str, Any]:
    return stream(mode=continuous(pps), **fields)


def ending(packets: int, **fields: Any) -> dict[str, Any]:
    return stream(mode=burst(packets), **fields)


def test_enabled_streams_refer_to_numbers_and_have_the_seeds_of_the_frame_table() -> None:
    chain = [ending(2, name="a", next="b"), ending(3, name="b", next="a", self_start=False)]
    streams = [*chain, steady(10, enabled=False), steady(20, random_seed=99)]
    found = server_streams(streams, seed=7)
    assert [item["stream_id"] for item in found] == [1, 2, 4]
    assert [item["stream"]["next_stream_id"] for item in found] == [2, 1, -1]
    assert [item["stream"]["random_seed"] for item in found] == [7, 8, 99]


@pytest.mark.parametrize(
    "streams",
    [
        [ending(5)],
        [ending(5, name="a", next="b"), ending(1, name="b", self_start=False)],
        [ending(5, name="a", next="a", action_count=3)],
    ],
)
def test_a_profile_that_ends_is_refused(streams: list[dict[str, Any]]) -> None:
    with pytest.raises(BadInput, match="ends") as caught:
        server_streams(streams)
    assert "--engine replay" in caught.value.hint
    assert server_streams([ending(5, name="a", next="a")])


def test_counted_streams_send_exactly_their_share() -> None:
    streams = server_streams([steady(30), steady(10), steady(1)])
    found = counted_streams(streams, {0: 75, 1: 25, 2: 0})
    modes = [item["stream"]["mode"] for item in found]
    assert [(mode["type"], mode["total_pkts"]) for mode in modes] == [("single_burst", 75), ("single_burst", 25)]
    assert [mode["rate"]["value"] for mode in modes] == [30, 10]
    assert streams[0]["stream"]["mode"]["type"] == "continuous", "the streams themselves stay as they were"
    with pytest.raises(BadInput, match="stream 2"):
        counted_streams(server_streams([steady(10), ending(5, name="a", next="a")]), {0: 5, 1: 5})


def test_shares_are_those_of_the_frame_table() -> None:
    """One and a half loops: as many packets of each stream as the replay engine plays."""
    lab = lab_named("lab03-ipset")
    tables = TrafficStore(PROJECT, TOPOLOGY, lab)
    frames = tables.table("attack").frames
    count = len(frames) * 3 // 2
    shares = tables.by_stream("attack", count)
    played = [*frames.stream, *frames.stream[: count - len(frames)]]
    assert shares == {place: played.count(place) for place in range(3)}
    assert sum(shares.values()) == count
