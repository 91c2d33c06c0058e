# SPDX-License-Identifier: GPL-2.0-or-later
"""How many rules a packet may pass if chains call chains: ten calls on each of twelve levels make 10^12 rules.

The kernel walks them all without a break, and a DUT that does so no longer answers.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

#: Rules for one packet, somewhat more than lab03's longest list. Packets of SSH may have to pass them, too.
MOST_RULES = 300_000
#: Rules that the kernel visits while it checks a ruleset. There every branch of a verdict map counts.
MOST_CHECKED = 10_000_000

CIRCLE = ("chains call each other in a loop", "break the loop: the kernel refuses it")
TOO_MANY = (
    f"a packet may pass more than {MOST_RULES} rules, with those of the chains that are called",
    "call fewer chains, or match with a set",
)
TOO_MANY_BRANCHES = (
    f"chains and verdict maps branch into more than {MOST_CHECKED} rules",
    "call fewer chains, or match with a set",
)


@dataclass
class Chain:
    """A chain of a ruleset, or a verdict map.

    rules  how many rules it has
    calls  how often it calls each chain or map
    one    a packet enters one of the called at most: it is a verdict map, with a call for each key
    """

    rules: int = 0
    calls: Counter[Hashable] = field(default_factory=Counter)
    one: bool = False


def too_many(chains: dict[Hashable, Chain], first: Iterable[Hashable]) -> tuple[str, str] | None:
    """The fault and a hint if a packet that enters by one of the `first` chains passes too many rules."""
    reached, todo = set(), [name for name in first if name in chains]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += [called for called in chains[name].calls if called in chains]
    graph = {name: [called for called in chains[name].calls if called in reached] for name in reached}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError:
        return CIRCLE
    passed: dict[Hashable, int] = {}
    checked: dict[Hashable, int] = {}
    for name in order:  # called chains come first
        chain = chains[name]
        inside = [(called, times) for called, times in chain.calls.items() if called in reached]
        if chain.one:
            passes = max((passed[called] for called, _ in inside), default=0)
        else:
            passes = sum(times * passed[called] for called, times in inside)
        passed[name] = min(chain.rules + passes, MOST_RULES + 1)
        checked[name] = min(chain.rules + sum(times * checked[called] for called, times in inside), MOST_CHECKED + 1)
    if any(count > MOST_RULES for count in passed.values()):
        return TOO_MANY
    return TOO_MANY_BRANCHES if any(count > MOST_CHECKED for count in checked.values()) else None
