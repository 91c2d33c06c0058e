# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples by call stack: each function's share, and the boxes of a flame graph.

A stack is its functions from the outermost to the innermost, joined by semicolons. `Stacks` maps each to its samples.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

Stacks = Mapping[str, int]


@dataclass(frozen=True)
class FunctionShare:
    """A function's share of all samples: alone, and with everything that it calls."""

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
        for name in set(functions):  # a recursive function counts once
            whole[name] += samples
    total = sum(stacks.values())
    result = [FunctionShare(name, own[name] / total, count / total) for name, count in whole.items() if total]
    return sorted(result, key=lambda share: (-share.own, -share.whole, share.name))


@dataclass(frozen=True)
class Box:
    """One function at one place of the graph: `left` and `width` are shares of all samples; depth 0 is outermost."""

    name: str
    depth: int
    left: float
    width: float
    samples: int


def boxes(stacks: Stacks, narrowest: float = 0.0) -> list[Box]:
    """Boxes of a flame graph, callers below callees, neighbours in alphabetical order; narrower ones are omitted."""
    total = sum(stacks.values())
    paths = sorted((tuple(stack.split(";")), samples) for stack, samples in stacks.items() if samples)
    placed: list[Box] = []
    _place(paths, 0, 0, total, narrowest, placed)
    return placed


def _place(
    paths: list[tuple[tuple[str, ...], int]], depth: int, start: int, total: int, narrowest: float, placed: list[Box]
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
            placed.append(Box(name, depth, start / total, samples / total, samples))
            _place(paths[index:end], depth + 1, start, total, narrowest, placed)
        start += samples
        index = end
