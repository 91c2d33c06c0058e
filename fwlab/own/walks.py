# SPDX-License-Identifier: GPL-2.0-or-later
"""A packet's way through the rules, by the kernel's trace: what became of it, and which rule or policy decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fwlab.own.bench import MARKS
from fwlab.own.packets import Packet, is_error
from fwlab.own.rules import Key

#: What a packet can become. `gone`: the kernel dropped it without asking a rule, or a rule gave it to a program.
FORWARDED, DELIVERED, DROPPED, REJECTED, GONE = "forwarded", "delivered", "dropped", "rejected", "gone"
#: Hooks whose chains decide about a packet; those of the others prepare or follow.
DECIDING = ("input", "forward", "output")
#: Fields of a packet that are drawn for it, or follow from others.
_UNSEEN = ("seq", "ack", "id")


@dataclass(frozen=True)
class Walk:
    """One packet.

    fate     one of the above
    decider  the rule or policy that decided; None if no rule was asked
    met      every rule that matched and every policy, in order
    left     packets that left meanwhile, each with its interface
    mark     the packet's mark at the end
    verdicts what each of `met` did: its verdict, and the chain that it jumps or goes to
    """

    fate: str
    decider: Key | None
    met: tuple[Key, ...]
    left: tuple[tuple[str, Packet], ...]
    mark: int = 0
    verdicts: tuple[tuple[str, str], ...] = ()

    @property
    def outcome(self) -> dict[str, Any]:
        """What another ruleset has to do alike."""
        found: dict[str, Any] = {"fate": self.fate}
        for number, (iface, packet) in enumerate(self.left, 1):
            name = f"packet {number}" if number > 1 else "packet"
            found[f"{name} left by"] = iface
            found |= {f"{name} {field}": value for field, value in packet.items() if field not in _UNSEEN}
        if self.mark and self.fate in (FORWARDED, DELIVERED):
            found["mark"] = self.mark
        return found


def walk(
    way: list[list[Any]], left: list[list[Any]], mark: int, translating: frozenset[tuple[str, str, str]] = frozenset()
) -> Walk:
    """What the trace says of one packet.

    translating  as Rules has it: a rule there does not decide whether a packet passes, no more than a policy behind it
    """
    hook, ended, dropped, elsewhere = "", "", None, None
    met: list[Key] = []
    verdicts: list[tuple[str, str]] = []
    last: dict[str, tuple[Key, bool]] = {}
    for family, table, chain, handle, kind, verdict, target in way:
        if table == MARKS:
            hook, ended = chain.removesuffix("_end"), chain if chain.endswith("_end") else ended
            continue
        key = family, table, chain, handle
        if handle or kind == "policy":
            met.append(key)
            verdicts.append((verdict, target))
        if verdict == "drop":
            dropped = key
        elif verdict in ("stolen", "queue"):
            elsewhere = key
        elif verdict == "accept":
            decides = kind == "rule" and key[:3] not in translating
            if decides or hook not in last or not last[hook][1]:
                last[hook] = key, decides
    deciding = [key for name, (key, _) in last.items() if name in DECIDING]
    others = [key for name, (key, _) in last.items() if name not in DECIDING]
    accepting = deciding or others
    decider = dropped or elsewhere or (accepting[-1] if accepting else None)
    fate = GONE
    if dropped:
        fate = REJECTED if any(_rejects(packet) for _, packet in left) else DROPPED
    elif ended:
        fate = FORWARDED if ended.startswith("post") else DELIVERED
    elif left and not way:
        fate = FORWARDED  # by a flow table
    gone = tuple((iface, packet) for iface, packet in left)
    return Walk(fate, decider, tuple(met), gone, mark, tuple(verdicts))


def _rejects(packet: Mapping[str, Any]) -> bool:
    return is_error(packet) or bool(packet.get("flags", 0) & 4)
