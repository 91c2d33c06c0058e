# SPDX-License-Identifier: GPL-2.0-or-later
"""What a DUT can bear: the memory that a ruleset may use, and how many rules a packet may pass.

A DUT that runs out of memory kills its own programs, even SSH. One on which chains call chains no longer answers: ten
calls on each of twelve levels make 10^12 rules, and the kernel walks them all without a break.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

#: Rules for one packet, somewhat more than lab03's longest list. Packets of SSH may have to pass them, too.
MAX_RULES = 300_000
#: Rules that the kernel visits while it checks a ruleset. There every branch of a verdict map counts.
MAX_CHECKED = 10_000_000

CIRCLE = ("chains call each other in a loop", "break the loop: the kernel refuses it")
TOO_MANY = (
    f"a packet may pass more than {MAX_RULES} rules, with those of the chains that are called",
    "call fewer chains, or match with a set",
)
TOO_MANY_BRANCHES = (
    f"chains and verdict maps branch into more than {MAX_CHECKED} rules",
    "call fewer chains, or match with a set",
)

Key = TypeVar("Key", bound=Hashable)


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


def reached(first: Iterable[Key], leads: Callable[[Key], Iterable[Key]]) -> set[Key]:
    """These, and all that they lead to: the chains that are called, for example."""
    found = set(first)
    todo = [*found]
    while todo:
        more = set(leads(todo.pop())) - found
        found |= more
        todo += more
    return found


def too_many(chains: dict[Hashable, Chain], first: Iterable[Hashable]) -> tuple[str, str] | None:
    """The fault and a hint if a packet that enters by one of the `first` chains passes too many rules."""
    graph = {name: [called for called in chain.calls if called in chains] for name, chain in chains.items()}
    entered = reached((name for name in first if name in chains), graph.__getitem__)
    try:
        order = list(TopologicalSorter({name: graph[name] for name in entered}).static_order())
    except CycleError:
        return CIRCLE
    passed: dict[Hashable, int] = {}
    checked: dict[Hashable, int] = {}
    for name in order:  # called chains come first
        chain = chains[name]
        inside = [(called, times) for called, times in chain.calls.items() if called in entered]
        if chain.one:
            passes = max((passed[called] for called, _ in inside), default=0)
        else:
            passes = sum(times * passed[called] for called, times in inside)
        passed[name] = min(chain.rules + passes, MAX_RULES + 1)
        checked[name] = min(chain.rules + sum(times * checked[called] for called, times in inside), MAX_CHECKED + 1)
    if any(count > MAX_RULES for count in passed.values()):
        return TOO_MANY
    return TOO_MANY_BRANCHES if any(count > MAX_CHECKED for count in checked.values()) else None


#: A quarter of the DUT's 1024 MiB (topology.yml); its system and the agent need half.
MAX_BYTES = 256 << 20
#: Bytes of one entry of a set with its counters, roughly, and of one bucket of a hash table.
ENTRY, BUCKET = 64, 8
MAX_ENTRIES = MAX_BYTES // ENTRY
#: Packets that a queue may hold. Each takes more than 1 KiB.
MAX_QUEUED = 100_000


def number(text: str) -> int | None:
    """A whole number as C's strtoul reads it: decimal, 0x... or octal with a leading 0. None for anything else."""
    if len(text) > 25 or not text.isascii():
        return None
    try:
        return int(text, 8) if text.startswith("0") and text.isdigit() else int(text, 0)
    except ValueError:
        return None
