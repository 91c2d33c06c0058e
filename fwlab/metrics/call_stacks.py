# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples by call stack: which belong to packets, each function's share, and the boxes of a flame graph.

A stack is its functions from the outermost to the innermost, joined by semicolons; stacks map to how often each
was met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

Stacks = Mapping[str, int]

#: Where the kernel begins to serve packets; what called it says only whom they interrupted.
SERVING = ("net_rx_action", "net_tx_action")
#: Programs whose own time is none of the packets': the idle loop, perf, and the agent that measures.
OTHERS = ("swapper", "perf", "python3")


def of_packets(sampled: Stacks) -> dict[str, int]:
    """Stacks as perf saw them, program first, without what idled or measured; packets begin where serving does.

    What other programs of the kernel do (a worker that expires connections) is the packets' cost as well, and
    keeps its name in front.
    """
    found: Counter[str] = Counter()
    for stack, samples in sampled.items():
        program, *functions = stack.split(";")
        start = next((place for place, name in enumerate(functions) if name in SERVING), None)
        if start is not None:
            found[";".join(functions[start:])] += samples
        elif not program.startswith(OTHERS):
            found[stack] += samples
    return dict(found)


@dataclass(frozen=True)
class FunctionShare:
    """A function's share of all samples: its own, and with everything that it calls."""

    name: str
    own: float
    whole: float


def shares(stacks: Stacks) -> list[FunctionShare]:
    """Every function, the most expensive first; empty without samples."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, samples in stacks.items():
        functions = stack.split(";")
        own[functions[-1]] += samples
        for name in set(functions):  # one that calls itself is there once
            whole[name] += samples
    total = sum(stacks.values())
    found = [FunctionShare(name, own[name] / total, count / total) for name, count in whole.items() if total]
    return sorted(found, key=lambda share: (-share.own, -share.whole, share.name))


@dataclass(frozen=True)
class Box:
    """One function in one place of the graph: `left` and `width` are shares of all samples, depth 0 is outermost."""

    name: str
    depth: int
    left: float
    width: float
    samples: int


def boxes(stacks: Stacks, narrowest: float = 0.0) -> list[Box]:
    """Callers below what they call, neighbours in alphabetical order; boxes below a width are left out."""
    total = sum(stacks.values())
    paths = sorted((tuple(stack.split(";")), samples) for stack, samples in stacks.items() if samples)
    found: list[Box] = []
    _place(paths, 0, 0, total, narrowest, found)
    return found


def _place(
    paths: list[tuple[tuple[str, ...], int]], depth: int, start: int, total: int, narrowest: float, found: list[Box]
) -> None:
    """`paths` share their first `depth` functions; `start` samples lie to the left of them."""
    index = 0
    while index < len(paths):
        if len(paths[index][0]) <= depth:  # samples in the caller itself
            start += paths[index][1]
            index += 1
            continue
        name = paths[index][0][depth]
        end = index
        while end < len(paths) and paths[end][0][depth] == name:
            end += 1
        samples = sum(count for _, count in paths[index:end])
        if samples / total >= narrowest:
            found.append(Box(name, depth, start / total, samples / total, samples))
            _place(paths[index:end], depth + 1, start, total, narrowest, found)
        start += samples
        index = end
