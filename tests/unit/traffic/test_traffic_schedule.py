# SPDX-License-Identifier: GPL-2.0-or-later
"""The schedule of streams: modes, chains, gaps, rates, ties."""

from __future__ import annotations

import heapq
import random

import pytest

from fwlab.traffic import expand
from fwlab.traffic import schedule as schedules
from fwlab.traffic.streams import parse_streams
from tests.fakes.traffic_forms import burst, continuous, packet, rate, stream, variable, write


def sent(*streams, limit=20):
    """(microseconds, number of the stream) of each frame."""
    frames = expand(list(streams), limit=limit)
    return [(int(t) // 1000, int(s) + 1) for t, s in zip(frames.times_ns, frames.stream, strict=True)]


def chained(name, packets, *, after=None, **fields):
    return stream(mode=burst(packets), name=name, next=after, **fields)


MULTI = {"type": "multi_burst", "pkts_per_burst": 2, "ibg": 500.0, "count": 3, "rate": rate(1000)}


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        ([stream()], [(n * 1000, 1) for n in range(20)]),
        ([stream(isg=250.0)], [(n * 1000 + 250, 1) for n in range(20)]),
        ([stream(mode=burst(3))], [(0, 1), (1000, 1), (2000, 1)]),
        ([stream(mode=MULTI)], [(0, 1), (1000, 1), (1500, 1), (2500, 1), (3000, 1), (4000, 1)]),
        (
            [chained("a", 2, after="b"), chained("b", 2, self_start=False, isg=100.0)],
            [(0, 1), (1000, 1), (1100, 2), (2100, 2)],
        ),
        (
            [chained("a", 1, after="b", isg=10.0), chained("b", 1, after="a", self_start=False, action_count=3)],
            [(10, 1), (10, 2), (20, 1), (20, 2), (30, 1), (30, 2)],
        ),
        ([chained("a", 2, after="a")], [((n + 1) // 2 * 1000, 1) for n in range(20)]),
        (
            [chained("a", 1, after="b"), stream(mode=burst(3, 100), name="b", isg=10.0)],
            [(0, 1), (10, 2), (10010, 2), (20010, 2)],
        ),
    ],
    ids=["endless", "delayed", "burst", "bursts", "next", "loops", "loop without end", "already started"],
)
def test_when_streams_send(streams, expected):
    assert sent(*streams) == expected


def test_disabled_silent_and_paused_streams_send_nothing():
    assert {s for _, s in sent(stream(enabled=False), stream(flags=8), stream(start_paused=True), stream())} == {4}


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (512_000, "bps_L2", 1000),
        (672_000, "bps_L1", 1000),
        (10, "percentage", 1e9 / (84 * 8)),
        (1234.5, "pps", 1234.5),
    ],
)
def test_rates_become_packets_per_second(value, kind, expected):
    [parsed] = parse_streams([stream(mode=continuous(value, kind))])
    assert parsed.pps == pytest.approx(expected)


@pytest.mark.parametrize(
    ("lengths", "mean"),
    [({}, 530), ({"op": "random"}, pytest.approx(530, rel=0.03)), ({"value_list": [60, 100, 200]}, 120)],
)
def test_a_rate_in_bits_counts_the_mean_length(lengths, mean):
    trim = {"type": "trim_pkt_size", "name": "v"}
    [parsed] = parse_streams([stream(variable(low=60, high=1000, **lengths), trim, data=packet(1000))])
    assert parsed.mean_length == mean


#: What GNU's priority_queue gives for three streams that are always due together.
TIES = [3, 1, 2, 3, 1, 2, 2, 3, 1]


def test_ties_are_broken_by_the_order_of_the_queue():
    assert [s for _, s in sent(*[stream(mode=continuous(1))] * 3, limit=9)] == TIES


@pytest.mark.parametrize("seed", range(10))
def test_mixed_rates_come_in_order_of_time(seed):
    dice = random.Random(seed)
    pps = [dice.randint(1, 5000) for _ in range(dice.randint(2, 7))]
    tasks = parse_streams([stream(mode=continuous(p)) for p in pps])
    times, numbers = schedules.schedule(tasks, 300)
    queue = [(0.0, number) for number in range(len(tasks))]
    expected = []
    for _ in range(300):
        now, number = heapq.heappop(queue)
        expected.append((now, number))
        heapq.heappush(queue, (now + tasks[number].gap, number))
    assert sorted(zip(times.tolist(), numbers.tolist(), strict=True)) == sorted(expected)


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_housekeeping_may_be_skipped_without_changing_ties(count, monkeypatch):
    tasks = parse_streams([stream(mode=continuous(value)) for value in ([1, 2, 0.5, 4] * 2)[:count]])
    quick = schedules.schedule(tasks, 60)

    def every_event(queue, until):
        while queue.items[0] == schedules._HOUSEKEEPING:
            queue.pop()
            queue.times[schedules._HOUSEKEEPING] += schedules._HOUSEKEEPING_GAP
            queue.push(schedules._HOUSEKEEPING)

    monkeypatch.setattr(schedules, "_run_housekeeping", every_event)
    slow = schedules.schedule(tasks, 60)
    assert quick[0].tolist() == slow[0].tolist()
    assert quick[1].tolist() == slow[1].tolist()


def test_variables_continue_over_bursts_and_loops():
    form = stream(variable(high=100), write(), mode=burst(2), name="a", next="a")
    frames = expand([form], limit=7)
    assert [int.from_bytes(frame[44:46], "big") for frame in frames] == [1, 2, 3, 4, 5, 6, 7]
