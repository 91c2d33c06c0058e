# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a packet's instructions go: the rules that it is compared with, and what stretches of these cost.

A stretch is rules of one chain that follow each other. What it costs is measured: the packet is dropped before the
first of them and before the first of the next stretch, and the difference of the two prices is the stretch's. The
dearest stretch is divided again and again, so a rule that costs much ends alone in one.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fwlab.own.bench_client import Bench
from fwlab.own.prices import Price, heaviest
from fwlab.own.rules import Key, Rules
from fwlab.own.walks import Walk

#: Classes that are divided, cuts that are made, and times that a packet is sent for each.
CLASSES, CUTS, TIMES = 6, 32, 5


def compared(rules: Rules, walk: Walk) -> list[Key]:
    """The rules that the packet was compared with, in order, and the policies that it met."""
    found: list[Key] = []
    left: list[list[Key]] = []  # of each chain that is not over: its policy, by which it is known, and further rules
    for key, (verdict, target) in zip(walk.met, walk.verdicts, strict=True):
        while left and key[:3] != left[-1][0][:3]:
            found += left.pop()[1:]
        if not left:
            left.append(_whole(rules, key[:3]))
        further = left[-1]
        place = further.index(key) if key[3] and key in further else len(further) - 1
        found += further[1 : place + 1]
        del further[1 : place + 1]
        if verdict in ("goto", "return"):
            del further[1:]
        if verdict in ("jump", "goto"):
            left.append(_whole(rules, (*key[:2], target)))
        elif verdict not in ("return", "continue"):
            left.clear()
        if not key[3]:
            found.append(key)
    return found


def _whole(rules: Rules, chain: tuple[str, str, str]) -> list[Key]:
    known = rules.chains.get(chain)
    return [(*chain, 0), *(rule.key for rule in (rules.of(known) if known else ()))]


@dataclass(frozen=True)
class Stretch:
    """Rules of one chain that follow each other.

    first         of the rules; None: the last one that it meets, and all that the kernel does outside of the rules
    rules         number of rules that the packet was compared with
    instructions  for a packet
    """

    first: Key | None
    rules: int
    instructions: float


@dataclass(frozen=True)
class Division:
    """Where the instructions go.

    of         the stretches of each class that was divided, by what decides
    together   those of all these classes, weighted; the dearest first
    share      what these classes take of all instructions, by the counters; None without counters
    """

    of: dict[Key, list[Stretch]]
    together: list[Stretch]
    share: float | None


def divide(
    bench: Bench, rules: Rules, prices: Sequence[Price], ns_per_instruction: float, notify: Callable[[str], None]
) -> Division:
    """Divide the classes that take most instructions; without counters the dearest one."""
    counted = any(one.weight for one in prices)
    chosen = list(filter(_divisible, heaviest(prices)))[: CLASSES if counted else 1]
    notify(f"{bench.name}: dividing the {len(chosen)} classes that take most")
    cutting = _Cutting(bench, ns_per_instruction, [(one, compared(rules, one.of.walk)) for one in chosen], counted)
    with bench.untraced():
        cutting.cut_all()
    spent, whole = (sum(one.total * (one.weight or 0) for one in some) for some in (chosen, prices))
    of = {one.of.decider: cutting.stretches(one) for one in chosen}
    return Division(of, cutting.together(), spent / whole if counted else None)


def _divisible(one: Price) -> bool:
    """Whether its packet can be dropped by the sender of its frame."""
    step = one.of.timed.steps[one.of.timed.place]
    return "smac" not in step.get("packet", {}) and not one.of.timed.fresh


class _Cutting:
    """Cuts, and what the packets of some classes cost up to each."""

    def __init__(
        self, bench: Bench, ns_per_instruction: float, walks: list[tuple[Price, list[Key]]], counted: bool
    ) -> None:
        self._bench, self._scale = bench, ns_per_instruction
        self._prices = {one.of.decider: one for one, _ in walks}
        self._weights = {one.of.decider: (one.weight or 0) if counted else 1 for one, _ in walks}
        #: The place at which each packet first meets a rule.
        self._places = {
            one.of.decider: {key: place for place, key in reversed(list(enumerate(walk)))} for one, walk in walks
        }
        self._lengths = {one.of.decider: len(walk) for one, walk in walks}
        self._walks = {one.of.decider: walk for one, walk in walks}
        self._costs: dict[Key, dict[Key, float]] = {one.of.decider: {} for one, _ in walks}
        self._made: set[Key] = set()

    def cut_all(self) -> None:
        for key in self._needed():
            self._cut(key)
        while len(self._made) < CUTS and (middle := self._next()) is not None:
            self._cut(middle)

    def _needed(self) -> list[Key]:
        """The last rule that each packet meets, the first one of each chain, and the one behind each jump."""
        found = dict.fromkeys(walk[-1] for walk in self._walks.values())
        for decider, walk in self._walks.items():
            for place, key in enumerate(walk):
                turns = place == 0 or walk[place - 1][:3] != key[:3]
                if turns and self._places[decider][key] == place:
                    found[key] = None
        return list(found)[:CUTS]

    def _cut(self, key: Key) -> None:
        meeting = [decider for decider, places in self._places.items() if key in places]
        packets = [self._prices[decider].of.timed for decider in meeting]
        for decider, times in zip(meeting, self._bench.price(packets, TIMES, key), strict=True):
            if times:
                self._costs[decider][key] = statistics.median(times) / self._scale
        self._made.add(key)

    def _next(self) -> Key | None:
        """The rule in the middle of the dearest stretch that has several."""
        for stretch in self.together():
            for decider, walk in self._walks.items():
                places = self._places[decider]
                if stretch.first is None or stretch.first not in self._costs[decider]:
                    continue
                begin = places[stretch.first]
                later = [places[key] for key in self._costs[decider] if places[key] > begin]
                middle = (begin + min([*later, self._lengths[decider]])) // 2
                if middle > begin and places[walk[middle]] == middle and walk[middle] not in self._made:
                    return walk[middle]
        return None

    def stretches(self, price: Price) -> list[Stretch]:
        """Those of a class, in the order in which its packet meets them."""
        costs, places = self._costs[price.of.decider], self._places[price.of.decider]
        starts = sorted(costs, key=lambda key: places[key])
        if not starts:
            return [Stretch(None, 0, price.total)]
        found = [Stretch(None, 0, costs[starts[0]] + price.total - costs[starts[-1]])]
        for start, end in pairwise(starts):
            found.append(Stretch(start, places[end] - places[start], costs[end] - costs[start]))
        return found

    def together(self) -> list[Stretch]:
        """Those of all classes, per packet of these."""
        total = sum(self._weights.values()) or 1
        sums: dict[Key | None, tuple[int, float]] = {}
        for decider, price in self._prices.items():
            for one in self.stretches(price):
                rules, cost = sums.get(one.first, (0, 0.0))
                sums[one.first] = max(rules, one.rules), cost + one.instructions * self._weights[decider] / total
        found = [Stretch(first, rules, cost) for first, (rules, cost) in sums.items()]
        return sorted(found, key=lambda one: -one.instructions)
