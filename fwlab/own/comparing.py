# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether two rulesets do the same with every packet that is drawn from either, and where they do not.

A difference counts if it is there again when the conversation is played alone, on rules that were just loaded. What
differs between two such plays of the same rules (a port that is drawn, say) counts on neither side. It is then reduced
to the plainest conversation about which the same two rules decide differently.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from fwlab.own.bench_client import Bench, Played
from fwlab.own.borders import DPORT, SPORT, Drawn, Step, together
from fwlab.own.captures import Capture
from fwlab.own.layout import SELF, Layout
from fwlab.own.reach import Reached, reach
from fwlab.own.rules import Key, Rules
from fwlab.own.walks import Walk

#: Kinds of differences that are reduced, the conversations of each that are tried, and the rounds of reducing.
MAX_KINDS, TRIED, ROUNDS = 24, 3, 12
#: Plays of a conversation alone, and where rules go by chance.
AGAIN, AGAIN_BY_CHANCE = 2, 8
STATES = "entries in the connection table"


@dataclass(frozen=True)
class Difference:
    """One difference.

    steps    the plainest conversation
    place    the step at which it shows
    changed  what differs: before and after
    old, new what became of the packet; None if there was nothing to answer
    kinds    conversations in which the same rules decided
    """

    steps: list[Step]
    place: int
    changed: dict[str, tuple[Any, Any]]
    old: Walk | None
    new: Walk | None
    kinds: int = 1

    def deciders(self) -> tuple[Key | None, Key | None]:
        """What decided on each side."""
        return self.old.decider if self.old else None, self.new.decider if self.new else None


@dataclass
class Comparison:
    """Both sides, and where they differ."""

    old: Reached
    new: Reached
    conversations: int
    packets: int
    kernel: str
    differences: list[Difference] = field(default_factory=list)
    unstable: int = 0
    left_out: int = 0


def compare(
    old: Bench,
    new: Bench,
    rules: tuple[Rules, Rules],
    layout: Layout,
    seed: int,
    notify: Callable[[str], None],
    capture: Capture | None = None,
    *,
    only_captured: bool = False,
    most: int = MAX_KINDS,
) -> Comparison:
    """Play packets from both rulesets' borders through both, whose rules are loaded.

    capture  whose conversations are played, too, or alone
    most     kinds of differences that are reduced
    """
    old.prepare(layout)
    new.prepare(layout)
    sides = [
        reach(bench, one, layout, seed, notify, capture, only_captured=only_captured)
        for bench, one in zip((old, new), rules, strict=True)
    ]
    first, second = _each_on_both(old, new, sides, notify)
    pairs = list(zip(first.drawn, first.played, second.played, strict=True))
    found = Comparison(first, second, len(pairs), first.packets, old.kernel)
    again = AGAIN_BY_CHANCE if any(one.by_chance for one in rules) else AGAIN
    judge = _Judge(old, new, layout, again, fresh=any(one.remembers for one in rules))
    kinds: dict[Any, list[tuple[Drawn, Difference]]] = {}
    for drawn, before, after in pairs:
        difference = first_difference(drawn.steps, before, after, {})
        if difference is not None:
            kinds.setdefault(_kind(difference, rules), []).append((drawn, difference))
    found.left_out = max(0, len(kinds) - most)
    seen = dict[Any, Difference]()
    for number, several in enumerate(list(kinds.values())[:most], 1):
        notify(f"reducing difference {number} of {min(len(kinds), most)}")
        shrunk = judge.plainest([drawn.steps for drawn, _ in several[:TRIED]])
        if shrunk is None:
            found.unstable += 1
        else:
            identity = _kind(shrunk, rules)
            total = len(several) + (seen[identity].kinds if identity in seen else 0)
            kept = min(shrunk, seen.get(identity, shrunk), key=lambda one: len(repr(one.steps)))
            seen[identity] = replace(kept, kinds=total)
    found.differences = list(seen.values())
    return found


def _each_on_both(
    old: Bench, new: Bench, sides: list[Reached], notify: Callable[[str], None]
) -> tuple[Reached, Reached]:
    """Both sides with the conversations of both, in the same order."""
    drawn: dict[str, Drawn] = {one.identity: one for side in sides for one in side.drawn}
    whole = together(drawn.values())
    result = []
    for bench, side in zip((old, new), sides, strict=True):
        known = {one.identity: played for one, played in zip(side.drawn, side.played, strict=True)}
        missing = [one for one in whole if one.identity not in known]
        notify(f"{bench.name}: playing {len(missing)} conversations of the other's")
        known |= dict(zip((one.identity for one in missing), bench.play([one.steps for one in missing]), strict=True))
        both = Reached(side.rules, side.layout, deciders=side.deciders)
        own = {one.identity for one in side.drawn}
        of_own = [one if one.identity in own else Drawn(one.steps) for one in whole]
        both.add(of_own, [known[one.identity] for one in whole])
        result.append(both)
    return result[0], result[1]


def _kind(difference: Difference, rules: tuple[Rules, Rules]) -> Any:
    decided = [side.words(key) if key else "" for side, key in zip(rules, difference.deciders(), strict=True)]
    fates = difference.changed.get("fate")
    return *decided, fates or tuple(sorted(difference.changed))


def first_difference(
    steps: list[Step], before: Played, after: Played, ignored: dict[int, set[str]]
) -> Difference | None:
    """The first step that becomes something else, or else what is left in the connection table.

    ignored  by step, what does not count; -1 is the connection table
    """
    for place, (old, new) in enumerate(zip(before[0], after[0], strict=True)):
        one, other = (side.outcome if side else {"fate": "nothing to answer"} for side in (old, new))
        changed = {
            name: (one.get(name), other.get(name))
            for name in dict.fromkeys([*one, *other])
            if one.get(name) != other.get(name) and name not in ignored.get(place, ())
        }
        if _same_end(changed) or _kept_together(steps[place], changed):
            changed = {}
        if changed:
            return Difference(steps, place, changed, old, new)
    if before[1] != after[1] and -1 not in ignored:
        place = len(steps) - 1
        lists = ["; ".join(entries) or "none" for entries in (before[1], after[1])]
        return Difference(steps, place, {STATES: (lists[0], lists[1])}, before[0][place], after[0][place])
    return None


def _same_end(changed: dict[str, tuple[Any, Any]]) -> bool:
    """Whether the packet vanished on both sides, with no rule asked on one of them."""
    return set(changed) == {"fate"} and set(changed["fate"]) == {"gone", "dropped"}


def _kept_together(step: Step, changed: dict[str, tuple[Any, Any]]) -> bool:
    """Whether only one side put fragments together, as connection tracking does, and so kept the first for a while."""
    part = step.get("packet", {}).get("part")
    if part == 0:
        return "gone" in changed.get("fate", ())
    return part == 1 and not set(changed) & {"fate", "packet left by"}


class _Judge:
    """Plays conversations alone on both sides."""

    def __init__(self, old: Bench, new: Bench, layout: Layout, again: int, *, fresh: bool) -> None:
        self._old, self._new, self._layout, self._again, self._fresh = old, new, layout, again, fresh

    def plainest(self, several: list[list[Step]]) -> Difference | None:
        """The plainest form of the first of these that differs again; None if none does."""
        for steps in several:
            found, ignored = self._confirmed(steps)
            if found is not None:
                return self._reduced(found, ignored)
        return None

    def _confirmed(self, steps: list[Step]) -> tuple[Difference | None, dict[int, set[str]]]:
        runs = [list(bench.play([steps] * self._again, fresh=True)) for bench in (self._old, self._new)]
        ignored: dict[int, set[str]] = {}
        for side in runs:
            for place in range(len(steps)):
                outcomes = [one[0][place].outcome if one[0][place] else {} for one in side]  # type: ignore[union-attr]
                for name in {name for one in outcomes for name in one}:
                    if len({repr(one.get(name)) for one in outcomes}) > 1:
                        ignored.setdefault(place, set()).add(name)
            if any(states != side[0][1] for _, states in side):
                ignored[-1] = set()
        return first_difference(steps, runs[0][0], runs[1][0], ignored), ignored

    def _reduced(self, found: Difference, ignored: dict[int, set[str]]) -> Difference:
        for _ in range(ROUNDS):
            candidates = list(simpler(found, self._layout))
            if not candidates:
                break
            runs = [list(bench.play(candidates, fresh=self._fresh)) for bench in (self._old, self._new)]
            best = None
            for steps, before, after in zip(candidates, *runs, strict=True):
                other = first_difference(steps, before, after, ignored)
                if other and other.deciders() == found.deciders() and set(other.changed) == set(found.changed):
                    best = other
                    break
            if best is None:
                break
            found = best
        return found


def simpler(found: Difference, layout: Layout) -> Iterator[list[Step]]:
    """Conversations that are one step plainer, the plainest first."""
    steps, last = found.steps, found.place
    if len(steps) > last + 1 and STATES not in found.changed:
        yield copy.deepcopy(steps[: last + 1])
    for count in (len(steps) // 2, len(steps) // 4, 1):
        for first in dict.fromkeys((0, len(steps) - 1 - count)):
            shorter = _without(steps, first, count) if 0 < count < len(steps) and first >= 0 else None
            if shorter is not None:
                yield shorter
    packets = [step for step in steps if "packet" in step]
    for name, plain in (("dscp", None), ("ttl", None), ("length", None), ("code", 0)):
        if any(name in step["packet"] and step["packet"][name] != plain for step in packets):
            yield _changed(steps, name, plain)
    for ends, value in ((("src", "dst"), None), (("sport", "dport"), None)):
        seen: set[Any] = set()
        for step in packets:
            for end in ends:
                given = step["packet"].get(end)
                value = _plain_end(step, end, layout)
                if given is not None and given not in seen and value is not None and given != value:
                    seen.add(given)
                    yield _replaced(steps, ends, given, value)


def _plain_end(step: Step, end: str, layout: Layout) -> Any:
    if end in ("sport", "dport"):
        return SPORT if end == "sport" else DPORT
    here, there = (step["iface"], step["out"]) if end == "src" else (step["out"], step["iface"])
    version = step["packet"]["version"]
    return layout.gateway(there, version) if here == SELF else layout.host(here, version)


def _without(steps: list[Step], first: int, count: int) -> list[Step] | None:
    """The conversation without some steps; None if a later one answers them."""
    rest = []
    for place, step in enumerate(steps):
        if first <= place < first + count:
            continue
        moved = copy.deepcopy(step)
        for answer in ("reply", "error"):
            if answer in moved:
                if first <= moved[answer] < first + count:
                    return None
                moved[answer] -= count if moved[answer] >= first + count else 0
        rest.append(moved)
    return rest


def _changed(steps: list[Step], name: str, value: Any) -> list[Step]:
    found = copy.deepcopy(steps)
    for step in found:
        if "packet" in step:
            step["packet"].pop(name, None)
            if value is not None:
                step["packet"][name] = value
    return found


def _replaced(steps: list[Step], ends: tuple[str, ...], given: Any, value: Any) -> list[Step]:
    found = copy.deepcopy(steps)
    for step in found:
        for end in ends:
            if "packet" in step and step["packet"].get(end) == given:
                step["packet"][end] = value
    return found
