# SPDX-License-Identifier: GPL-2.0-or-later
"""What was found, as text and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from fwlab.own.borders import Step
from fwlab.own.changes import Change
from fwlab.own.comparing import Comparison, Difference
from fwlab.own.forms import Form
from fwlab.own.packets import ICMP, ICMPV6, TCP, UDP, Packet
from fwlab.own.prices import Pair, Price, dearer, mean, share
from fwlab.own.reach import Reached
from fwlab.own.rules import Rules
from fwlab.own.stretches import Division, Stretch, compared
from fwlab.own.walks import Walk

_FLAGS = (("SYN", 2), ("ACK", 16), ("FIN", 1), ("RST", 4), ("PSH", 8), ("URG", 32))
_PROTOCOLS = {TCP: "TCP", UDP: "UDP", ICMP: "ICMP", ICMPV6: "ICMPv6"}
#: Rules that are listed at most, and characters of each.
LISTED, WIDTH = 20, 110
#: Where the conversations of a comparison come from.
DRAWN, CAPTURED, BOTH = "drawn from both rulesets", "of the capture", "drawn from both rulesets, or of the capture"
#: Characters of a bar.
BAR = 24


def packet_in_words(packet: Packet) -> str:
    """A packet on one line."""
    protocol = _PROTOCOLS.get(packet["proto"], f"protocol {packet['proto']}")
    ends = []
    for address, port in (("src", "sport"), ("dst", "dport")):
        shown = f"[{packet[address]}]" if packet["version"] == 6 and port in packet else packet[address]
        ends.append(f"{shown}:{packet[port]}" if port in packet else shown)
    more = []
    if packet["proto"] == TCP:
        more.append(",".join(name for name, bit in _FLAGS if packet.get("flags", 2) & bit) or "no flags")
    if "type" in packet:
        more.append(f"type {packet['type']}" + (f" code {packet['code']}" if packet.get("code") else ""))
    more += [f"{name} {packet[name]}" for name in ("ttl", "dscp", "length") if packet.get(name) not in (None, 0, 64)]
    return " ".join([protocol, *ends[:1], ">", *ends[1:], *more])


def steps_in_words(steps: list[Step]) -> Iterator[str]:
    """A conversation, a line for each step; equal ones that follow each other on one line."""
    lines = [_step(step) for step in steps]
    for place, line in enumerate(lines):
        if place and lines[place - 1] == line:
            continue
        times = next((count for count, other in enumerate(lines[place:]) if other != line), len(lines) - place)
        yield line if times == 1 else f"{times} times: {line}"


def _step(step: Step) -> str:
    if "wait" in step:
        return f"{step['wait']:g} s later:"
    if "reply" in step:
        changed = ", ".join(f"{name} {value}" for name, value in step.get("changed", {}).items())
        return f"the reply to packet {step['reply'] + 1}" + (f" with {changed}" if changed else "")
    if "error" in step:
        return f"an ICMP error about packet {step['error'] + 1}"
    return f"{packet_in_words(step['packet'])}, from {_end(step['iface'])} to {_end(step['out'])}"


def _end(name: str) -> str:
    return "the machine itself" if name == "self" else name


def became(walk: Walk | None) -> str:
    """What became of a packet, in words."""
    if walk is None:
        return "there was nothing to answer"
    left = [f"{packet_in_words(packet)} by {iface}" for iface, packet in walk.left]
    fate = {"gone": "dropped without a rule"}.get(walk.fate, walk.fate)
    return f"{fate}: {'; '.join(left)}" if left else fate


def comparison_lines(found: Comparison, names: tuple[str, str], source: str = DRAWN) -> Iterator[str]:
    """A comparison for people. source: where its conversations come from."""
    for number, one in enumerate(found.differences, 1):
        yield f"difference {number}, in {_counted(one.kinds, 'conversation')}: {', '.join(_changes(one))}"
        yield from (f"  {line}" for line in steps_in_words(one.steps))
        for name, walk, side in ((names[0], one.old, found.old), (names[1], one.new, found.new)):
            yield f"  {name}: {became(walk)}"
            yield from (f"    {line}" for line in deciding(walk, side.rules))
        yield ""
    tried = f"{found.conversations} conversations ({found.packets} packets) {source}"
    yield f"tried: {tried}, on Linux {found.kernel}"
    for name, side in zip(names, (found.old, found.new), strict=True):
        yield from reached_lines(name, side)
    if found.left_out:
        yield f"{found.left_out} more kinds of differences were not reduced"
    if found.unstable:
        yield f"{found.unstable} kinds of differences did not show again when played alone; they do not count"
    kinds = len(found.differences)
    yield _counted(kinds, "difference") if kinds else "no difference was found in what was tried"


def difference_in_words(one: Difference, found: Comparison) -> str:
    """A difference on one line: what differs, the conversation, and what decided on either side."""
    decided = [
        f"{name} decides by `{side.rules.words(walk.decider)}`"
        for name, walk, side in (("the start", one.old, found.old), ("yours", one.new, found.new))
        if walk is not None and walk.decider is not None
    ]
    return "; ".join([", ".join(_changes(one)), *steps_in_words(one.steps), *decided])


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{('es' if what.endswith('s') else 's') * (number != 1)}"


def _changes(one: Difference) -> list[str]:
    shown = [name for name in one.changed if not name.startswith("packet ")] or list(one.changed)
    return [
        f"{name}: {_value(before)} / {_value(after)}" for name, (before, after) in one.changed.items() if name in shown
    ]


def _value(value: Any) -> str:
    return "none" if value is None else str(value)


def deciding(walk: Walk | None, rules: Rules) -> Iterator[str]:
    """The rule that decided, and others that changed the packet on its way."""
    if walk is None or walk.decider is None:
        return
    yield f"decided by: {rules.words(walk.decider)}"
    for key in walk.met:
        chain = rules.chains.get(key[:3])
        if key != walk.decider and key in rules.rules and chain is not None:
            yield f"met: {rules.words(key)}"


def reached_lines(name: str, side: Reached) -> Iterator[str]:
    """How many rules the packets reached, and which not."""
    missed = side.missed()
    yield f"{name}: {len(side.rules.rules) - len(missed)} of {len(side.rules.rules)} rules reached"
    for rule, decider in missed[:LISTED]:
        on_lo = any(match.spans == (("lo", "lo"),) for match in rule.matches)
        yield f"  not reached: {rule.text[:WIDTH]}{' (no packet on lo is tried)' * on_lo}"
        if decider is not None:
            yield f"    its packets were decided by: {side.rules.words(decider)[:WIDTH]}"
    if len(missed) > LISTED:
        yield f"  and {len(missed) - LISTED} more"


def comparison_document(found: Comparison) -> dict[str, Any]:
    """A comparison for programs."""
    return {
        "kernel": found.kernel,
        "conversations": found.conversations,
        "packets": found.packets,
        "unstable": found.unstable,
        "not_reduced": found.left_out,
        "old": reached_document(found.old),
        "new": reached_document(found.new),
        "differences": [
            {
                "steps": one.steps,
                "step": one.place,
                "conversations": one.kinds,
                "changed": {name: {"old": old, "new": new} for name, (old, new) in one.changed.items()},
                "old": _side(one.old, found.old.rules),
                "new": _side(one.new, found.new.rules),
            }
            for one in found.differences
        ],
    }


def _side(walk: Walk | None, rules: Rules) -> dict[str, Any] | None:
    if walk is None:
        return None
    return {
        "fate": walk.fate,
        "decided_by": rules.words(walk.decider) if walk.decider else None,
        "met": [rules.words(key) for key in walk.met if key in rules.rules],
        "left": [{"by": iface, **packet} for iface, packet in walk.left],
    }


def reached_document(side: Reached) -> dict[str, Any]:
    """Which rules were reached."""
    missed = side.missed()
    return {
        "rules": len(side.rules.rules),
        "reached": len(side.rules.rules) - len(missed),
        "not_reached": [
            {"rule": rule.text, "decided_by": side.rules.words(decider) if decider else None}
            for rule, decider in missed
        ],
    }


def price_lines(prices: Sequence[Price], division: Division, reached: Reached, name: str) -> Iterator[str]:
    """Prices for people, the class that takes most first."""
    rules = reached.rules
    counted = any(one.weight for one in prices)
    weight = "share" if counted else "packets"
    yield f"{'pps':>9} {'instructions':>12} {'rules add':>10} {'rules':>6} {weight:>8}  what became of it; what decided"
    for one in sorted(prices, key=lambda one: -(one.total * (one.weight or 0) if counted else one.total)):
        part = share(one, prices)
        shown = f"{part:.1%}" if part is not None else f"{one.of.packets}"
        added = "" if one.added is None else f"{one.added:+,.0f}"
        figures = f"{one.pps:>9,.0f} {one.total:>12,.0f} {added:>10} {len(compared(rules, one.of.walk)):>6}"
        yield f"{figures} {shown:>8}  {one.of.walk.fate}: {rules.words(one.of.decider)[:WIDTH]}"
        several = [part for part in division.of.get(one.of.decider, ()) if part.first]
        if several:
            most = max(several, key=lambda part: part.instructions)
            yield f"{'':>50}dearest: {stretch_in_words(most, rules)[:WIDTH]} ({most.instructions:,.0f})"
    yield ""
    yield from where_lines(division, rules)
    if (middle := mean(prices)) is not None:
        yield f"mean by the rules' own counters: {middle:,.0f} instructions per packet, {1e9 / middle:,.0f} pps"
    yield from reached_lines(name, reached)


def where_lines(division: Division, rules: Rules) -> Iterator[str]:
    """Where the instructions go, as bars."""
    if not division.together:
        return
    yield f"where they go, {division_in_words(division)}"
    whole = sum(one.instructions for one in division.together)
    for one in division.together:
        part = one.instructions / whole
        bar = "#" * round(BAR * max(part, 0))
        yield f"{one.instructions:>10,.0f} {part:>6.1%} {bar:<{BAR}}  {stretch_in_words(one, rules)[:WIDTH]}"
    yield ""


def division_in_words(division: Division) -> str:
    """Which classes were divided."""
    if division.share is None:
        return "instructions for a packet of the dearest class:"
    classes = f"the {len(division.of)} classes that take {division.share:.0%} of them by the counters"
    return f"instructions per packet of {classes}:"


def stretch_in_words(one: Stretch, rules: Rules) -> str:
    """A stretch by its first rule."""
    if one.first is None:
        return "outside of the rules, and the last one"
    if one.first not in rules.rules:
        return rules.words(one.first)
    place = [rule.key for rule in rules.of(rules.chains[one.first[:3]])].index(one.first) + 1
    numbers = f"{place}" if one.rules < 2 else f"{place} to {place + one.rules - 1}"
    return f"{one.first[2]} {numbers}: {rules.words(one.first)}{' ...' if one.rules > 1 else ''}"


def prices_document(prices: Sequence[Price], division: Division, reached: Reached) -> dict[str, Any]:
    """Prices for programs."""
    rules, middle = reached.rules, mean(prices)
    return {
        "classes": [
            {
                "decided_by": rules.words(one.of.decider),
                "fate": one.of.walk.fate,
                "instructions": round(one.total, 1),
                "packets_per_second": round(one.pps),
                "rules_add": None if one.added is None else round(one.added, 1),
                "spread": round(one.spread, 5),
                "counter": one.weight,
                "share": share(one, prices),
                "met": [rules.words(key) for key in one.of.walk.met],
                "compared_with": len(compared(rules, one.of.walk)),
                "stretches": _stretches(division.of.get(one.of.decider, ()), rules),
                "steps": one.of.timed.steps,
            }
            for one in prices
        ],
        "mean_by_counters": middle,
        "mean_packets_per_second": None if middle is None else round(1e9 / middle),
        "where": {"share": division.share, "stretches": _stretches(division.together, rules)},
        **reached_document(reached),
    }


def _stretches(several: Sequence[Stretch], rules: Rules) -> list[dict[str, Any]]:
    return [
        {"from": stretch_in_words(one, rules), "rules": one.rules, "instructions": round(one.instructions, 1)}
        for one in several
    ]


def form_lines(several: Sequence[Form], prices: Sequence[Price]) -> Iterator[str]:
    """The same rules in other forms, for people."""
    yield ""
    how = "by the counters" if mean(prices) is not None else "of the classes, each once"
    yield f"{'mean':>9} {'dearest':>9}  form (instructions per packet; mean {how})"
    for one in several:
        if one.reason:
            yield f"{'':>9} {'':>9}  {one.name}: cannot be made: {one.reason}"
            continue
        middle, most = form_costs(one, prices)
        other = f"; {_counted(one.other, 'class')} of {len(prices)} become something else" * bool(one.other)
        yield f"{middle:>9,.0f} {most:>9,.0f}  {one.name}{other}"


def form_costs(one: Form, prices: Sequence[Price]) -> tuple[float, float]:
    """The mean of a form's prices, and the highest of packets that arrive."""
    costs = [cost for cost in one.total if cost is not None]
    arriving = [cost for cost, of in zip(one.total, prices, strict=True) if cost is not None and of.arrives]
    return mean(prices, one.total) or sum(costs) / max(len(costs), 1), max(arriving, default=0.0)


def forms_document(several: Sequence[Form], prices: Sequence[Price]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {"form": one.name, "reason": one.reason}
        if one.reason
        else {
            "form": one.name,
            "mean": form_costs(one, prices)[0],
            "dearest": form_costs(one, prices)[1],
            "other_classes": one.other,
            "instructions": one.total,
        }
        for one in several
    ]


def change_lines(several: Sequence[Change]) -> Iterator[str]:
    """Changes that were tried, for people."""
    yield ""
    yield "changes, each measured with the same packets:"
    for one in several:
        yield f"  {change_in_words(one)}"
    if not several:
        yield "  none of those that are tried changes anything in these rules"


def change_in_words(one: Change) -> str:
    """A change and what it does."""
    return f"{one.title}: {_effect(one)}"


def _effect(one: Change) -> str:
    if one.found is None:
        return f"cannot be loaded: {one.reason}"
    if one.found.differences:
        first = one.found.differences[0]
        packet = "; ".join(steps_in_words(first.steps))
        return f"not offered, it changes what the rules do: {packet}: {', '.join(_changes(first))}"
    tried = f"no difference in {one.found.conversations} conversations"
    return f"not measured; {tried}" if one.more is None else f"{one.more:+.1%} instructions; {tried}"


def changes_document(several: Sequence[Change]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "change": one.title,
            "dearer": one.more,
            "reason": one.reason or None,
            "differences": None if one.found is None else comparison_document(one.found)["differences"],
            "conversations": None if one.found is None else one.found.conversations,
            "files": {file.name: file.text for file in one.files},
        }
        for one in several
    ]


def pair_lines(pairs: Sequence[Pair], rules: Rules) -> Iterator[str]:
    """Prices side by side, for people."""
    yield ""
    yield f"{'OLD':>10} {'NEW':>10} {'':>8}  instructions for a packet about which OLD decides by"
    for one in pairs:
        decided = rules.words(one.of.decider)[:WIDTH]
        yield f"{one.old:>10,.0f} {one.new:>10,.0f} {one.new / one.old - 1:>+8.1%}  {decided}"
    if (more := dearer(pairs)) is not None:
        how = "by OLD's counters" if any(one.weight for one in pairs) else "each of these once"
        yield f"NEW takes {more:+.1%} instructions, {how}"


def pairs_document(pairs: Sequence[Pair], rules: Rules) -> dict[str, Any]:
    """Prices side by side, for programs."""
    return {
        "dearer": dearer(pairs),
        "classes": [
            {
                "decided_by": rules.words(one.of.decider),
                "old_instructions": round(one.old, 1),
                "new_instructions": round(one.new, 1),
                "counter": one.weight,
            }
            for one in pairs
        ],
    }
