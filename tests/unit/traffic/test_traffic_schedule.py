# SPDX-License-Identifier: GPL-2.0-or-later
"""The schedule of streams: modes, chains, gaps, rates, ties."""

from __future__ import annotations

import heapq
import random

import numpy as np
import pytest

from fwlab.traffic import expand
from fwlab.traffic import schedule as schedules
from fwlab.traffic.streams import parse_streams
from tests.fakes.traffic_forms import burst, packet, rate, stream, variable, write


def sent(*streams, limit=20):
    """(microseconds, number of the stream) of each frame."""
    frames = expand(list(streams), limit=limit)
    return [(int(t) // 1000, int(s) + 1) for t, s in zip(frames.times_ns, frames.stream, strict=True)]


def test_continuous_sends_until_the_limit():
    assert sent(stream(), limit=4) == [(0, 1), (1000, 1), (2000, 1), (3000, 1)]


def test_isg_delays_the_start():
    assert sent(stream(isg=250.0), limit=2) == [(250, 1), (1250, 1)]


def test_a_single_burst_ends():
    assert sent(stream(mode=burst(3))) == [(0, 1), (1000, 1), (2000, 1)]


def test_bursts_are_a_gap_apart():
    mode = {"type": "multi_burst", "pkts_per_burst": 2, "ibg": 500.0, "count": 3, "rate": rate(1000)}
    assert sent(stream(mode=mode)) == [(0, 1), (1000, 1), (1500, 1), (2500, 1), (3000, 1), (4000, 1)]


def test_the_next_stream_starts_with_the_last_packet_and_its_own_gap():
    first = stream(mode=burst(2), name="a", next="b")
    second = stream(mode=burst(2), name="b", self_start=False, isg=100.0)
    assert sent(first, second) == [(0, 1), (1000, 1), (1100, 2), (2100, 2)]


def test_action_count_ends_a_loop():
    first = stream(mode=burst(1), name="a", next="b", isg=10.0)
    second = stream(mode=burst(1), name="b", next="a", self_start=False, action_count=3)
    assert len(sent(first, second)) == 6


def test_a_loop_without_count_runs_to_the_limit():
    assert sent(stream(mode=burst(2), name="a", next="a"), limit=5) == [
        (0, 1),
        (1000, 1),
        (1000, 1),
        (2000, 1),
        (2000, 1),
    ]


def test_two_running_streams_do_not_start_each_other():
    first = stream(mode=burst(1), name="a", next="b")
    second = stream(mode=burst(3, 100), name="b", isg=10.0)
    assert sent(first, second) == [(0, 1), (10, 2), (10010, 2), (20010, 2)]


def test_disabled_silent_and_paused_streams_send_nothing():
    numbers = [s for _, s in sent(stream(enabled=False), stream(flags=8), stream(start_paused=True), stream())]
    assert numbers
    assert set(numbers) == {4}


def test_streams_are_interleaved_in_proportion():
    numbers = [s for _, s in sent(stream(), stream(mode={"type": "continuous", "rate": rate(3000)}), limit=400)]
    assert (numbers.count(1), numbers.count(2)) == (100, 300)


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
    [parsed] = parse_streams([stream(mode={"type": "continuous", "rate": rate(value, kind)})])
    assert parsed.pps == pytest.approx(expected)


def test_a_rate_in_bits_counts_the_mean_length():
    trim = {"type": "trim_pkt_size", "name": "v"}
    [parsed] = parse_streams([stream(variable(low=60, high=1000), trim, data=packet(1000))])
    assert parsed.mean_length == 530
    [parsed] = parse_streams([stream(variable(low=60, high=1000, op="random"), trim, data=packet(1000))])
    assert parsed.mean_length == pytest.approx(530, rel=0.03)
    [parsed] = parse_streams([stream(variable(value_list=[60, 100, 200]), trim, data=packet(1000))])
    assert parsed.mean_length == 120


#: What GNU's priority_queue gives for three streams that are always due together.
TIES = [3, 1, 2, 3, 1, 2, 2, 3, 1]


def test_ties_are_broken_by_the_order_of_the_queue():
    once_a_second = {"type": "continuous", "rate": rate(1)}
    assert [s for _, s in sent(*[stream(mode=once_a_second)] * 3, limit=9)] == TIES


@pytest.mark.parametrize("seed", range(10))
def test_mixed_rates_come_in_order_of_time(seed):
    dice = random.Random(seed)
    pps = [dice.randint(1, 5000) for _ in range(dice.randint(2, 7))]
    tasks = parse_streams([stream(mode={"type": "continuous", "rate": rate(p)}) for p in pps])
    times, numbers = schedules.schedule(tasks, 300)
    queue = [(0.0, number) for number in range(len(tasks))]
    expected = []
    for _ in range(300):
        now, number = heapq.heappop(queue)
        expected.append(now)
        heapq.heappush(queue, (now + tasks[number].gap, number))
    assert times.tolist() == expected
    for number, task in enumerate(tasks):
        own = times[numbers == number]
        assert (
            own.tolist() == np.add.accumulate(np.r_[0.0, np.full(max(len(own) - 1, 0), task.gap)])[: len(own)].tolist()
        )


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_housekeeping_may_be_skipped_without_changing_ties(count, monkeypatch):
    modes = [{"type": "continuous", "rate": rate(value)} for value in ([1, 2, 0.5, 4] * 2)[:count]]
    tasks = parse_streams([stream(mode=mode) for mode in modes])
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
