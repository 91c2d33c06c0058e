# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples by stack: which of them belong to packets, the functions' shares, and the boxes of a flame graph."""

from __future__ import annotations

import itertools

import pytest

from fwlab.dut.agent_client import of_packets
from fwlab.dut.linux.client import LinuxDut
from fwlab.metrics.call_stacks import Box, FunctionShare, boxes, shares

#: Ten samples: 4 in poll itself, 3 in receive, 1 in receive's allocation, 2 in send.
STACKS = {"poll": 4, "poll;receive": 3, "poll;receive;alloc": 1, "poll;send": 2}


def of_linux(sampled: dict[str, int]) -> dict[str, int]:
    return of_packets(sampled, LinuxDut.serving, LinuxDut.not_of_packets)


class TestOfPackets:
    def test_the_interrupted_function_is_left_out(self) -> None:
        raw = {"ksoftirqd/0;kthread;run;net_rx_action;poll": 5, "swapper;idle;irq;net_rx_action;poll": 2}
        assert of_linux(raw) == {"net_rx_action;poll": 7}

    @pytest.mark.parametrize("program", ["swapper", "swapper/1", "perf", "perf-exec", "python3"])
    def test_idle_and_perf_samples_are_left_out(self, program: str) -> None:
        assert of_linux({f"{program};do_idle": 9, "net;net_rx_action;poll": 1}) == {"net_rx_action;poll": 1}

    def test_packets_processed_within_perf_are_counted(self) -> None:
        assert of_linux({"perf;read;irq;net_rx_action;poll": 3}) == {"net_rx_action;poll": 3}

    def test_a_kernel_thread_keeps_its_name(self) -> None:
        raw = {"kworker/0:1-events;worker_thread;gc_worker": 4}
        assert of_linux(raw) == raw


class TestShares:
    def test_self_and_total_shares(self) -> None:
        assert shares(STACKS) == [
            FunctionShare("poll", 0.4, 1.0),
            FunctionShare("receive", 0.3, 0.4),
            FunctionShare("send", 0.2, 0.2),
            FunctionShare("alloc", 0.1, 0.1),
        ]

    def test_a_function_that_calls_itself_is_counted_once(self) -> None:
        assert shares({"walk;walk;walk": 1, "other": 1}) == [
            FunctionShare("other", 0.5, 0.5),
            FunctionShare("walk", 0.5, 0.5),
        ]

    def test_self_shares_sum_to_one(self) -> None:
        assert sum(share.own for share in shares(STACKS)) == pytest.approx(1)

    def test_nothing_sampled(self) -> None:
        assert shares({}) == []


class TestBoxes:
    def test_a_box_is_above_its_caller(self) -> None:
        assert boxes(STACKS) == [
            Box("poll", 0, 0.0, 1.0, 10),
            Box("receive", 1, 0.4, 0.4, 4),
            Box("alloc", 2, 0.7, 0.1, 1),
            Box("send", 1, 0.8, 0.2, 2),
        ]

    def test_narrow_boxes_are_left_out_with_their_callees(self) -> None:
        assert [box.name for box in boxes(STACKS, narrowest=0.2)] == ["poll", "receive", "send"]

    def test_no_two_boxes_of_a_row_overlap(self) -> None:
        stacks = {"a;c": 2, "a": 1, "b;c": 3, "a;b": 1, "a;b;c": 5}
        for depth in range(3):
            row = sorted((box for box in boxes(stacks) if box.depth == depth), key=lambda box: box.left)
            assert row
            for left, right in itertools.pairwise(row):
                assert left.left + left.width <= right.left + 1e-9

    def test_nothing_sampled(self) -> None:
        assert boxes({}) == boxes({"a": 0}) == []
