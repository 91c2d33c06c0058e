# SPDX-License-Identifier: GPL-2.0-or-later
"""What a ruleset's classes cost: the packets about which one rule or policy decides.

One packet of each class is sent through a bench again and again, in its conversation and with the trace off. The
virtual testbed's clock counts instructions, so the time that the kernel takes for the packet is their number. The same
packet through a bench without rules shows what the rules add.
"""

import contextlib
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fwlab.own.bench import SELF
from fwlab.own.bench_client import Bench, Timed
from fwlab.own.reach import Reached
from fwlab.own.rules import Key, Rules
from fwlab.own.walks import Walk

#: Times that each packet is sent, and those of a packet whose rules are loaded again before each.
TIMES, TIMES_FRESH = 9, 5


@dataclass(frozen=True)
class Class:
    """The packets about which one rule or policy decides, and one of them.

    timed    the packet that is timed, the plainest of those that took the way most of them take
    walk     what became of it
    packets  packets of this class that were drawn
    """

    decider: Key
    timed: Timed
    walk: Walk
    packets: int


@dataclass(frozen=True)
class Price:
    """What a packet of a class costs, in instructions.

    total   from its arrival to its end; bare: of the same packet without any rule
    spread  of the times: (largest - smallest) / median
    weight  packets of the class, by the ruleset's own counter; None without one
    """

    of: Class
    total: float
    bare: float | None
    spread: float
    weight: int | None

    @property
    def added(self) -> float | None:
        """What the rules add; less than nothing where they drop the packet early."""
        return None if self.bare is None else self.total - self.bare

    @property
    def pps(self) -> float:
        """Such packets per second of the reference CPU, which takes a nanosecond for an instruction."""
        return 1e9 / self.total

    @property
    def arrives(self) -> bool:
        """Whether such a packet comes from outside. What the machine sends itself includes its socket's price."""
        return self.of.timed.steps[self.of.timed.place].get("iface") != SELF


def classes(reached: Reached) -> list[Class]:
    """One class for each rule or policy that decided about a packet, in the order of the rules."""
    found: dict[Key, list[tuple[Walk, Timed]]] = {}
    for drawn, (steps, _) in zip(reached.drawn, reached.played, strict=True):
        for place, walk in enumerate(steps):
            if walk is not None and walk.decider is not None:
                found.setdefault(walk.decider, []).append((walk, Timed(drawn.steps, place)))
    order = [*reached.rules.rules, *(chain.key for chain in reached.rules.chains.values())]
    return [_class(reached.rules, key, found[key]) for key in order if key in found]


def _class(rules: Rules, key: Key, several: list[tuple[Walk, Timed]]) -> Class:
    usual, _ = Counter((walk.fate, walk.met) for walk, _ in several).most_common(1)[0]
    alike = [one for one in several if (one[0].fate, one[0].met) == usual]
    walk, timed = min(alike, key=lambda one: (one[1].place, len(one[1].steps), len(repr(one[1].steps))))
    fresh = rules.remembers and any(rules.rules[met].limit for met in walk.met if met in rules.rules)
    return Class(key, Timed(timed.steps[: timed.place + 1], timed.place, fresh), walk, len(several))


def price(
    bench: Bench,
    bare: Bench,
    rules: Rules,
    found: Sequence[Class],
    ns_per_instruction: float,
    notify: Callable[[str], None],
) -> list[Price]:
    """The price of each of these classes. Classes whose packet could not be sent again are left out."""
    notify(f"{bench.name}: timing one packet of each of {len(found)} classes")
    with bench.untraced(), bare.untraced():
        with_rules, without = _times(bench, found), _times(bare, found)
    prices = []
    for one, times, others in zip(found, with_rules, without, strict=True):
        if times:
            middle = statistics.median(times)
            prices.append(
                Price(
                    of=one,
                    total=middle / ns_per_instruction,
                    bare=statistics.median(others) / ns_per_instruction if others else None,
                    spread=(max(times) - min(times)) / middle,
                    weight=rules.packets(one.decider),
                )
            )
    return prices


def priced_again(
    bench: Bench, untraced: Sequence[Bench], prices: Sequence[Price], ns_per_instruction: float
) -> list[float | None]:
    """What the packets of these classes cost on another bench; None for one that could not be sent there."""
    with contextlib.ExitStack() as stack:
        for one in (bench, *untraced):
            stack.enter_context(one.untraced())
        several = _times(bench, [one.of for one in prices])
    return [statistics.median(times) / ns_per_instruction if times else None for times in several]


def heaviest(prices: Sequence[Price]) -> list[Price]:
    """Classes whose packets arrive, those first that take most: by the counters, or else for one packet."""
    counted = any(one.weight for one in prices)
    able = [one for one in prices if one.arrives and (one.weight or not counted)]
    return sorted(able, key=lambda one: -one.total * ((one.weight or 0) if counted else 1))


def sampled(
    bench: Bench, bare: Bench, one: Price, rates: Sequence[int], notify: Callable[[str], None]
) -> dict[str, int]:
    """Call stacks of the kernel with the packet of this class, and their samples at these rates (Hz)."""
    notify(f"{bench.name}: sampling the kernel with a packet of the class that takes most")
    with bench.untraced(), bare.untraced():
        return bench.sample(one.of.timed, rates)


def _times(bench: Bench, found: Sequence[Class]) -> list[list[int]]:
    usual = [one for one in found if not one.timed.fresh]
    fresh = [one for one in found if one.timed.fresh]
    times = dict(zip((one.decider for one in usual), bench.price([one.timed for one in usual], TIMES), strict=True))
    slow = bench.price([one.timed for one in fresh], TIMES_FRESH)
    times |= dict(zip((one.decider for one in fresh), slow, strict=True))
    return [times[one.decider] for one in found]


def mean(prices: Sequence[Price], totals: Sequence[float | None] | None = None) -> float | None:
    """The mean price weighted by the ruleset's counters, or that of other totals; None if none has counted."""
    costs = [one.total for one in prices] if totals is None else totals
    counted = [(cost, one.weight) for one, cost in zip(prices, costs, strict=True) if one.weight and cost is not None]
    total = sum(weight for _, weight in counted)
    return sum(cost * weight for cost, weight in counted) / total if total else None


def share(one: Price, prices: Sequence[Price]) -> float | None:
    """The part of all instructions that packets of this class take, by the counters."""
    total = sum(other.total * (other.weight or 0) for other in prices)
    return one.total * (one.weight or 0) / total if total else None


@dataclass(frozen=True)
class Pair:
    """What the same packet costs under two rulesets, in instructions, and how many such packets the old one counted."""

    of: Class
    old: float
    new: float
    weight: int | None


def side_by_side(
    old: Bench, new: Bench, reached: Reached, ns_per_instruction: float, notify: Callable[[str], None]
) -> list[Pair]:
    """The price of each of the old ruleset's classes, under both."""
    prices = price(old, new, reached.rules, classes(reached), ns_per_instruction, notify)
    return [Pair(one.of, one.total, one.bare, one.weight) for one in prices if one.bare is not None]


def means(pairs: Sequence[Pair]) -> tuple[float, float]:
    """What a packet costs under the old rules and the new, by the old ones' counters, or each class once if none
    counted. Raises ZeroDivisionError without any pair."""
    counted = any(one.weight for one in pairs)
    weights = [(one.weight or 0) if counted else 1 for one in pairs]
    old, new = (
        sum(getattr(one, side) * weight for one, weight in zip(pairs, weights, strict=True)) / sum(weights)
        for side in ("old", "new")
    )
    return old, new


def dearer(pairs: Sequence[Pair]) -> float | None:
    """How much dearer the new rules are, as a share, by `means`."""
    if not pairs:
        return None
    old, new = means(pairs)
    return new / old - 1
