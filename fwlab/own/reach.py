# SPDX-License-Identifier: GPL-2.0-or-later
"""Which rules the drawn packets reach on a bench, and what stands before those that none does."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from fwlab.own.bench_client import Bench, Played
from fwlab.own.borders import Drawn, beyond, draw, redraw, together
from fwlab.own.captures import Capture
from fwlab.own.layout import Layout
from fwlab.own.rules import Key, Match, Rule, Rules

#: Times that packets are drawn once more for rules that none has reached, for how many ways that earlier ones took, and
#: how many packets for each of these.
ROUNDS, WAYS, MANY = 3, 2, 8


@dataclass
class Reached:
    """Conversations, what became of each, and every rule or policy that one of their packets met.

    deciders, ways  for each rule, what decided about packets that fulfil its conditions, and what these met
    hit             rules that such a packet of theirs met
    """

    rules: Rules
    layout: Layout
    drawn: list[Drawn] = field(default_factory=list)
    played: list[Played] = field(default_factory=list)
    met: set[Key] = field(default_factory=set)
    deciders: dict[Key, Counter[Key]] = field(default_factory=dict)
    ways: dict[Key, Counter[tuple[Key, ...]]] = field(default_factory=dict)
    hit: set[Key] = field(default_factory=set)

    def add(self, drawn: list[Drawn], played: list[Played]) -> None:
        """Add conversations that were played."""
        self.drawn += drawn
        self.played += played
        for one, (steps, _) in zip(drawn, played, strict=True):
            self.met.update(key for walk in steps if walk is not None for key in walk.met)
            for key, place in one.subjects:
                subject = steps[place]
                if subject is not None and subject.decider is not None:
                    self.deciders.setdefault(key, Counter())[subject.decider] += 1
                    self.ways.setdefault(key, Counter())[subject.met] += 1
                    if key in subject.met:
                        self.hit.add(key)

    @property
    def packets(self) -> int:
        """Packets that were played."""
        return sum(walk is not None for steps, _ in self.played for walk in steps)

    def missed(self) -> list[tuple[Rule, Key | None]]:
        """Each rule that no packet met, with what decided about most of those that fulfil its conditions."""
        found = []
        for rule in self.rules.rules.values():
            if rule.key not in self.met:
                deciders = self.deciders.get(rule.key)
                found.append((rule, deciders.most_common(1)[0][0] if deciders else None))
        return found


def reach(
    bench: Bench,
    rules: Rules,
    layout: Layout,
    seed: int | None,
    notify: Callable[[str], None],
    capture: Capture | None = None,
    *,
    only_captured: bool = False,
) -> Reached:
    """Draw packets for all rules and play them; then again for those that none reached, past what decided instead.

    seed     as `draw` takes it
    capture  whose conversations are played, too, or alone
    """
    found = Reached(rules, layout)
    if capture is not None:
        notify(f"{bench.name}: playing {len(capture.drawn)} conversations of the capture")
        _add(bench, found, capture.drawn, set())
    if only_captured:
        return found
    drawn = draw(rules, layout, seed)
    notify(f"{bench.name}: playing {len(drawn)} conversations for {len(rules.rules)} rules")
    found.add(drawn, list(bench.play([one.steps for one in drawn])))
    known = {one.identity for one in drawn}
    past: dict[Key, tuple[Match, ...]] = {}
    for _ in range(ROUNDS):
        again: dict[str, Drawn] = {}
        for key in [key for key in found.ways if key not in found.hit]:
            tried: tuple[Match, ...] = ()
            for way, _ in found.ways.pop(key).most_common(WAYS):
                blockers = [rules.rules[one] for one in reversed(way) if one in rules.rules]
                several = redraw(rules, layout, rules.rules[key], blockers, past.get(key, ()))
                for conditions, one in islice((each for each in several if each[1].identity not in known), MANY):
                    again.setdefault(one.identity, one)
                    tried = tried or conditions
            if tried:
                past[key] = tried
        if not again:
            break
        notify(f"{bench.name}: {len(again)} more for rules that none of them reached")
        _add(bench, found, again.values(), known)
    if seed is not None:
        behind = {key: conditions for key, conditions in past.items() if key in found.hit}
        more = {one.identity: one for one in beyond(rules, layout, behind, seed) if one.identity not in known}
        notify(f"{bench.name}: {len(more)} at the borders of these")
        _add(bench, found, more.values(), known)
    return found


def _add(bench: Bench, found: Reached, drawn: Iterable[Drawn], known: set[str]) -> None:
    more = together(drawn)
    found.add(more, list(bench.play([one.steps for one in more])))
    known |= {one.identity for one in more}
