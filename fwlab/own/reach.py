# SPDX-License-Identifier: GPL-2.0-or-later
"""Which rules the drawn packets reach on a bench, and what stands before those that none does."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from fwlab.own.bench_client import Bench, Played
from fwlab.own.borders import Drawn, Layout, draw, redraw, together
from fwlab.own.rules import Key, Rule, Rules

#: Times that packets are drawn once more for rules that none has reached, and how many for each rule.
ROUNDS, MANY = 2, 8


@dataclass
class Reached:
    """Conversations, what became of each, and every rule or policy that one of their packets met."""

    rules: Rules
    layout: Layout
    drawn: list[Drawn] = field(default_factory=list)
    played: list[Played] = field(default_factory=list)
    met: set[Key] = field(default_factory=set)
    deciders: dict[Key, Counter[Key]] = field(default_factory=dict)

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


def reach(bench: Bench, rules: Rules, layout: Layout, seed: int | None, tell: Callable[[str], None]) -> Reached:
    """Draw packets for all rules and play them; then again for those that none reached, past what decided instead.

    seed  as `draw` takes it
    """
    found = Reached(rules, layout)
    drawn = draw(rules, layout, seed)
    tell(f"{bench.name}: playing {len(drawn)} conversations for {len(rules.rules)} rules")
    found.add(drawn, list(bench.play([one.steps for one in drawn])))
    known = {one.identity for one in drawn}
    for _ in range(ROUNDS):
        again: dict[str, Drawn] = {}
        for rule, _ in found.missed():
            for decider, _ in found.deciders.get(rule.key, Counter[Key]()).most_common(2):
                if blocker := rules.rules.get(decider):
                    for one in [*redraw(rules, layout, rule, blocker)][:MANY]:
                        if one.identity not in known:
                            again.setdefault(one.identity, one)
        if not again:
            break
        tell(f"{bench.name}: {len(again)} more for rules that none of them reached")
        more = together(again.values())
        found.add(more, list(bench.play([one.steps for one in more])))
        known |= set(again)
    return found
