# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks of the DUT, sampled under the same overload as in the trials of capacity; each function's share, and the
boxes of a flame graph.

A stack is its functions from the outermost to the innermost, joined by semicolons. `Stacks` maps each to its samples.

A DUT whose clock counts instructions is perfectly regular: every batch of packets takes the same time. A sampler of
one rate can lock onto that rhythm and hit the same few places of each batch. This is no rare accident: a sample takes
DUT time itself, more for a deep stack, so the two pull each other into step, like two pendulum clocks on one wall. At
4999 Hz ip_output got 51 % of the samples of plain forwarding, although the differences between cases give it a third
at most.

So the DUT is sampled at many rates at once, in the same window. The rates have no common divisor, each disturbs the
others, and one that locks on all the same has a small part of the samples. tests/unit/metrics/test_sampling_rates.py
has a model of it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from fwlab.generator.protocol import traffic_guard
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.model.results import Measured, Profile

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


#: Length of the window (s of the DUT's clock): about 3000 samples, which give a share of a tenth to half a percent.
SECONDS = 0.6
#: Samples per second of the DUT's clock: primes, far enough apart to drift within that time.
RATES = (211, 227, 241, 257, 271, 283, 293, 307, 317, 331, 347, 359, 373, 383, 397, 409)
#: Fewer samples than this are a problem.
MIN_SAMPLES = 500


def sample(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Sample the DUT under overload, at the throttle level of the trials of capacity; nothing without trials."""
    if not so_far.trials:
        return so_far
    nodes = session.nodes
    nodes.dut.prepare_stacks(RATES)
    with nodes.throttle(so_far.throttle_level):
        nodes.dut.arm_stacks(seconds=SECONDS)
        with traffic_guard(nodes.engine.start()) as playback:
            nodes.dut.collect_stacks(timeout=600)
    playback.stop()
    stacks = nodes.dut.read_stacks()
    seen = sum(stacks.values())
    few = f"the DUT was sampled {seen} times at work; at least {MIN_SAMPLES} say something"
    return so_far.plus(Profile(stacks=stacks)).troubled([few] if seen < MIN_SAMPLES else [])


PROFILE = Step(Phase.PROFILE, sample, despite_problems=False)
