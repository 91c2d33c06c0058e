# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of a chain in the forward hook without states, in a bench's place: a rule's last word is its verdict."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator

from fwlab.own.bench_client import Played
from fwlab.own.borders import Step
from fwlab.own.layout import Layout
from fwlab.own.rules import Chain, Key, Match, Rule, Rules, names_it
from fwlab.own.walks import DROPPED, FORWARDED, Walk

CHAIN = ("inet", "f", "c")


def rules_of(*rules: tuple[str, tuple[Match, ...]], policy: str = "drop") -> Rules:
    """A chain with these rules: text and conditions of each."""
    found = Rules({CHAIN: Chain(*CHAIN, "forward", "filter", policy)})
    for handle, (text, matches) in enumerate(rules, 2):
        key = (*CHAIN, handle)
        found.rules[key] = Rule(key, text, matches)
    return found


class ModelBench:
    """Plays conversations on the model. With `treated_once`, it does the opposite with the first of all."""

    kernel = "model"

    def __init__(self, name: str, rules: Rules, *, treated_once: bool = False) -> None:
        self.name, self.rules, self._once = name, rules, treated_once
        self.played = 0
        self.dear: dict[int, int] = {}

    def prepare(self, layout: Layout) -> None:
        self.layout = layout

    def play(self, conversations: list[list[Step]], *, fresh: bool = False) -> Iterator[Played]:
        for steps in conversations:
            self.played += 1
            yield [self._walk(step) if "packet" in step else None for step in steps], []

    def untraced(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def price(self, packets: list, times: int, cut: Key | None = None) -> Iterator[list[int]]:
        """A packet costs 4000 ns, each rule that it is compared with 40 more, and those in `dear` their price."""
        for one in packets:
            walk = self._walk(one.steps[one.place])
            handles = [key[3] for key in self.rules.rules]
            asked = len(handles) if walk is None or not walk.decider[3] else handles.index(walk.decider[3]) + 1
            if cut is not None:
                asked = handles.index(cut[3]) if cut[3] else len(handles)
            cost = 4000 + sum(self.dear.get(handle, 40) for handle in handles[:asked])
            yield [] if walk is None else [cost + 4 * n for n in range(times)]

    def _walk(self, step: Step) -> Walk | None:
        packet = step["packet"]
        if "self" in (step["iface"], step["out"]):
            return None
        point = {"iif": step["iface"], "oif": step["out"], "state": "new", **packet}
        point |= {name: int(ipaddress.ip_address(packet[end])) for name, end in (("saddr", "src"), ("daddr", "dst"))}
        key, verdict = (*CHAIN, 0), self.rules.chains[CHAIN].policy
        for rule in self.rules.rules.values():
            if all(_fulfils(match, point) for match in rule.matches):
                key, verdict = rule.key, rule.text.split()[-1]
                break
        if self._once and self.played == 1:
            verdict = "drop" if verdict == "accept" else "accept"
        if verdict == "drop":
            return Walk(DROPPED, key, (key,), (), verdicts=((verdict, ""),))
        return Walk(FORWARDED, key, (key,), ((step["out"], packet),), verdicts=((verdict, ""),))


def _fulfils(match: Match, point: dict) -> bool:
    value = point.get(match.field)
    if value is None:
        return False
    if match.field in ("iif", "oif"):
        return any(names_it(low, value) for low, _ in match.spans) != match.negated
    return any(low <= value <= high for low, high in match.spans) != match.negated
