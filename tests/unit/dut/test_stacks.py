# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples by stack: which of them belong to packets, the functions' shares, and the boxes of a flame graph."""

import itertools

import pytest

from fwlab.dut.agent_client import AgentDut, of_packets
from fwlab.dut.freebsd.client import FreeBsdDut
from fwlab.dut.linux.client import LinuxDut
from fwlab.metrics.call_stacks import Box, FunctionShare, boxes, shares

#: Ten samples: 4 in poll itself, 3 in receive, 1 in receive's allocation, 2 in send.
STACKS = {"poll": 4, "poll;receive": 3, "poll;receive;alloc": 1, "poll;send": 2}


SERVED = "vtnet_rx_vq_process;vtnet_rxq_eof;ether_input"


@pytest.mark.parametrize(
    ("dut", "sampled", "found"),
    [
        (
            LinuxDut,
            {"ksoftirqd/0;kthread;run;net_rx_action;poll": 5, "swapper;idle;irq;net_rx_action;poll": 2},
            {"net_rx_action;poll": 7},
        ),
        (LinuxDut, {"perf;read;irq;net_rx_action;poll": 3}, {"net_rx_action;poll": 3}),
        *((LinuxDut, {f"{name};do_idle": 9}, {}) for name in ("swapper", "swapper/1", "perf-exec", "python3")),
        (LinuxDut, {"kworker/0:1-events;worker_thread;gc": 4}, {"kworker/0:1-events;worker_thread;gc": 4}),
        (
            FreeBsdDut,
            {f"intr;fork_exit;{SERVED}": 5, "idle;sched_idletd": 9, "sh;sys_execve": 3, "pf purge;f": 1},
            {SERVED: 5, "pf purge;f": 1},
        ),
    ],
)
def test_a_packets_stack_begins_where_its_queue_is_served(
    dut: type[AgentDut], sampled: dict[str, int], found: dict[str, int]
) -> None:
    """What it interrupted is left out, as are the idle loop, the profiler and the agent. Kernel threads keep names."""
    assert of_packets(sampled, dut.serving, dut.not_of_packets) == found


@pytest.mark.parametrize(
    ("stacks", "found"),
    [
        (STACKS, [("poll", 0.4, 1.0), ("receive", 0.3, 0.4), ("send", 0.2, 0.2), ("alloc", 0.1, 0.1)]),
        ({"walk;walk;walk": 1, "other": 1}, [("other", 0.5, 0.5), ("walk", 0.5, 0.5)]),
        ({}, []),
    ],
    ids=["own and with callees", "a function that calls itself counts once", "nothing sampled"],
)
def test_shares_of_functions(stacks: dict[str, int], found: list[tuple[str, float, float]]) -> None:
    assert shares(stacks) == [FunctionShare(*one) for one in found]


def test_a_box_is_above_its_caller_and_narrow_ones_are_left_out_with_their_callees() -> None:
    assert boxes(STACKS) == [
        Box("poll", 0, 0.0, 1.0, 10),
        Box("receive", 1, 0.4, 0.4, 4),
        Box("alloc", 2, 0.7, 0.1, 1),
        Box("send", 1, 0.8, 0.2, 2),
    ]
    assert [box.name for box in boxes(STACKS, narrowest=0.2)] == ["poll", "receive", "send"]
    assert boxes({}) == boxes({"a": 0}) == []


def test_no_two_boxes_of_a_row_overlap() -> None:
    stacks = {"a;c": 2, "a": 1, "b;c": 3, "a;b": 1, "a;b;c": 5}
    for depth in range(3):
        row = sorted((box for box in boxes(stacks) if box.depth == depth), key=lambda box: box.left)
        assert row
        for left, right in itertools.pairwise(row):
            assert left.left + left.width <= right.left + 1e-9
