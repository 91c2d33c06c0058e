# SPDX-License-Identifier: GPL-2.0-or-later
"""What a ruleset does to packets, whatever its figures: a mark rests on it.

Alike: whether it treats a packet alike in a flood and at a light load, and before the flood and after it. Capacity is
measured in a flood; delivery is counted exactly, at a light load. A ruleset that distinguishes the two (by time, by a
quota, by a rate) could be cheap in one and correct in the other. So arrivals in the flood are counted by class as well,
and compared with the light loads.

Accounts: whether all packets that left the DUT were the traffic's own, as routing leaves them, and each of them once.
And whether the DUT had time for them: during a grading nobody is logged in to it, so whatever reads the kernel's log
has only the ruleset's lines to read.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from fwlab.model.check import Check
from fwlab.model.expectation import Range
from fwlab.model.results import Measured
from fwlab.model.trial import Delivery, PacedPlay

#: How far the share of a class that passes in the flood may be from that at a light load ...
SYSTEMATIC = 0.02
#: ... or, in an exercise about state, where answers are lost until their question has passed the full ring ...
#: (Of lab02's references and right variants, results/lab02-conntrack, none was further off than 2.8 %.)
SYSTEMATIC_OF_STATE = 0.05
#: ... and how many standard deviations of its count in addition: which packets a full ring takes is chance. (Of
#: lab03's 18 own rulesets, results/lab03-ipset, none was further off than 3.3 %, or 0.8 standard deviations.) Classes
#: that come in bunches scatter more, as Delivery.dispersion says: without it, "elsewhere" of lab06's ex6 (4.2) and ICMP
#: of lab02's ex3 (7.9) were up to 3.5 standard deviations off (results/, 2026-11-27-graded-variants).
DEVIATIONS = 3.0
#: Next to trains of segments, a full ring takes more of the packets that come alone: up to 11 % more in lab01's ex5
#: (results/lab01-forwarding/2026-11-27-2-exercises.json.gz). Copies add a packet to each, and are found one by one,
#: too.
FAVOURED = 0.25
#: QEMU loses no packet and counts none twice, but up to this many may be an accident. Of a class that is blocked at a
#: light load, this share may arrive in the flood in addition.
STRAY, STRAY_SHARE = 2, 0.0001
#: A class of which a light load delivers a smaller share is not compared: who passes differs from play to play. In the
#: flood, a full ring also takes packets in bursts, and those that pass lie together in the traffic (8.7 % against
#: 11 % with one-range of lab04's ex5, results/lab04-nftables). No check accepts such a share, so nothing is gained.
WHOLE = 0.99
#: Where the sink counts and has missed a larger share of what the DUT sent on in the flood, nothing is known of it.
MISSED = 0.05
#: Where limits may depend on the load: of all that must survive, at least this share of what survives in the exercise
#: must pass in the flood, too.
LIVES = 0.9
#: Of the flows that a flood on an empty table has probably brought, at least this share must be tracked. (lab02's and
#: lab07's references track all.)
TRACKED = 0.75
#: From this share of its limit on a table is full: the kernel makes room for newcomers.
FULL = 0.9
#: The programs that read the kernel's log. From this share on of all that ran apart from packets, they are the cause.
LOG_READERS, CAUSE = ("systemd-journal", "rsyslogd"), 0.5
#: The key of what is found in all classes together: the DUT counts what it sends on, but not by class.
ALL_CLASSES = ""


def changes(measured: Measured, *, stateful: bool = False) -> dict[str, str]:
    """By traffic class, how the ruleset treats it differently at different times; empty if it does not.

    stateful  a packet may pass only after another, so nothing is played before the flood and compared with it
    """
    changed: dict[str, str] = {}
    flood, share = measured.flood, SYSTEMATIC_OF_STATE if stateful else SYSTEMATIC
    if len(measured.deliveries) < (1 if stateful else 3):
        return changed
    last = measured.deliveries[-1]
    for name, offered in last.offered.items():
        if not stateful and (change := _after_flood(measured.deliveries, name)):
            changed[name] = f"it {change} {name} after the flood and not before it"
        elif offered and flood is not None and (change := _in_flood(flood, name, last.delivered(name), share)):
            changed[name] = f"it {change} {name} in the flood and not at a light load"
    for play in measured.paced:
        changed |= dict(_in_play(play, last, flood.dispersion if flood is not None else {}))
    if not changed and flood is not None and _sends_on_less(flood, last, share):
        changed[ALL_CLASSES] = "it blocks packets in the flood and not at a light load"
    return changed


def _in_play(play: PacedPlay, light: Delivery, dispersion: dict[str, float]) -> Iterator[tuple[str, str]]:
    """What the ruleset does only in a play above the DUT's capacity, where a full ring treats all classes alike."""
    came = {name: sum(trial.offered.get(name, 0) for trial in play.trials) for name in light.offered}
    left = {name: sum(trial.left(name) for trial in play.trials) for name in came}
    whole = [name for name, count in came.items() if count and (light.delivered(name) or 0) >= WHOLE]
    part = sum(left[name] for name in whole) / max(1, sum(came[name] for name in whole))
    for name, count in came.items():
        if name in whole and left[name] < part * count - _allowed(part * count, SYSTEMATIC, dispersion.get(name, 1.0)):
            yield name, f"it blocks {name} at the load of the exercise and not at a light load"
        elif light.delivered(name) == 0 and left[name] > STRAY + STRAY_SHARE * count:
            yield name, f"it lets through {name} at the load of the exercise and not at a light load"


def changes_of_limits(checks: Iterable[Check], measured: Measured) -> dict[str, str]:
    """By traffic class, what a ruleset with limits does in the flood and must not; empty if it does all it must.

    checks  those of the share of a class that passes at the load of the exercise
    A limit may drop more of what it limits than at the load of the exercise, but nothing else, and no less.
    """
    flood, plays = measured.flood, measured.paced
    if flood is None or not flood.sent or not flood.taken or not plays:
        return {}
    survival = [(check.traffic_class, check.between) for check in checks if check.traffic_class]
    taken = {name: flood.taken * flood.offered.get(name, 0) / flood.sent for name, _ in survival}
    trials = [trial for play in plays for trial in play.trials]
    alive = {name for name, (least, _) in survival if least > 0}
    expected = {}
    for name in alive:
        came = sum(trial.offered.get(name, 0) for trial in trials)
        expected[name] = taken[name] * sum(trial.left(name) for trial in trials) / max(1, came)
    arrived, total = sum(flood.arrived.get(name, 0) for name in alive), sum(expected.values())
    found = {}
    if arrived < total - _allowed(total, 1 - LIVES, _dispersion(flood, expected)):
        part = f"{arrived / total:.0%} of what passes at the exercise's load"
        found[ALL_CLASSES] = f"of what must survive, {part} passes in the flood"
    for name, (_, share) in survival:
        most = share * taken[name]
        if flood.arrived.get(name, 0) > most + _allowed(most, SYSTEMATIC, flood.dispersion.get(name, 1.0)):
            found[name] = f"it lets through {name} in the flood and not at the exercise's load"
    return found


def _after_flood(deliveries: list[Delivery], name: str) -> str | None:
    """What the ruleset does only after the flood; None if nothing."""
    first, again, *_ = deliveries
    before, after = first.delivered(name), again.delivered(name)
    if before is None or after is None or 0 < before < WHOLE or not _differ(before, after, first.offered[name]):
        return None
    return "blocks" if after < before else "lets through"


def _differ(before: float, after: float, packets: int) -> bool:
    """Whether two shares of `packets` packets differ. Only a ruleset that drops at random makes them scatter."""
    share = (before + after) / 2
    return abs(before - after) > SYSTEMATIC / 2 + 2 * DEVIATIONS * math.sqrt(max(0.0, share * (1 - share)) / packets)


def _in_flood(flood: Delivery, name: str, light: float | None, share: float) -> str | None:
    """What the ruleset does only in the flood; None if nothing."""
    if light is None or 0 < light < WHOLE or not flood.sent or not flood.taken:
        return None
    taken = flood.taken * flood.offered.get(name, 0) / flood.sent
    arrived = flood.arrived.get(name, 0)
    if light == 0:
        return "lets through" if arrived > STRAY + STRAY_SHARE * taken else None
    # A sink that is too slow for a moment misses large frames first, so all that it missed may be of this class.
    index = flood.dispersion.get(name, 1.0)
    allowed = _allowed(light * taken, share, index)
    if arrived + _missed(flood) < light * taken - allowed:
        return "blocks"
    return "multiplies" if arrived > light * taken + max(allowed, _allowed(light * taken, FAVOURED, index)) else None


def _missed(flood: Delivery) -> int:
    """Packets that the DUT sent on and the sink did not count."""
    return max(0, (flood.sent_on or 0) - sum(flood.arrived.values()))


def tracked_in_flood(measured: Measured, between: Range) -> str | None:
    """How the ruleset tracks connections differently in a flood than at a light load; None if it does not.

    between  how many it may track
    """
    states = measured.states
    if states is None or states.in_flood is None or not states.flooded:
        return None
    # The ring takes packets of the flood in bursts and at random: so large a share of the flows is among them.
    share = 1 - math.exp(-states.flooded / max(1, states.held))
    if states.in_flood > between[1]:
        return f"it tracks {states.in_flood} connections in the flood and {states.held} at a light load"
    if states.in_flood < TRACKED * share * min(states.held, between[0]):
        return f"it tracks only {states.in_flood} connections in the flood and {states.held} at a light load"
    return None


def untracked_in_flood(measured: Measured) -> str | None:
    """That the ruleset exempts packets from tracking in a flood and not at a light load; None if it does not.

    A table that was full has lost counts, so it shows nothing.
    """
    states, light = measured.states, measured.tracked_packets
    if states is None or light is None or states.counted is None or not states.flooded:
        return None
    if max(states.held, states.in_flood or 0) >= FULL * states.most:
        return None
    if sum(light.counted.values()) < WHOLE * sum(light.offered.values()):
        return None
    share = states.counted / states.flooded
    if share >= LIVES:
        return None
    return f"it tracks {share:.0%} of the packets in the flood and all of them at a light load"


def doubts(measured: Measured) -> list[str]:
    """Why nothing can be said of a flood that the sink has counted; empty if something can."""
    flood = measured.flood
    if flood is None or not flood.sent_on or _missed(flood) <= MISSED * flood.sent_on:
        return []
    counted = sum(flood.arrived.values())
    return [f"the sink counted {counted} of {flood.sent_on} packets that the DUT sent on in the flood"]


def _sends_on_less(flood: Delivery, last: Delivery, share: float) -> bool:
    """Whether the DUT sends on less of what it receives than at a light load. No count of the sink's matters here."""
    light = {name: last.delivered(name) or 0.0 for name, offered in flood.offered.items() if offered}
    if not flood.sent_on or not flood.sent or not flood.taken or any(0 < part < WHOLE for part in light.values()):
        return False
    taken = {name: part * flood.offered[name] * flood.taken / flood.sent for name, part in light.items()}
    expected = sum(taken.values())
    return flood.sent_on < expected - _allowed(expected, share, _dispersion(flood, taken))


def _dispersion(flood: Delivery, expected: dict[str, float]) -> float:
    """The index of dispersion of all these packets together. `expected`: how many of each class."""
    variance = sum(flood.dispersion.get(name, 1.0) * packets for name, packets in expected.items())
    return variance / max(1.0, sum(expected.values()))


def _allowed(packets: float, share: float, dispersion: float = 1.0) -> float:
    """How many packets a count may fall short of those expected: this share of them, and chance."""
    return share * packets + DEVIATIONS * math.sqrt(dispersion * packets)


def foreign(measured: Measured) -> str | None:
    """What left the DUT that must not, in words; None if nothing did."""
    counts: Counter[str] = Counter()
    for delivery in _deliveries(measured):
        counts.update(delivery.foreign)
        counts.update(_copies(delivery))
    for play in measured.paced:
        counts.update(play.foreign)
    found = [f"{count} packets were {what}" for what, count in counts.items() if count > STRAY]
    return f"what left the DUT is not what came in: {'; '.join(found)}" if found else None


def _deliveries(measured: Measured) -> Iterator[Delivery]:
    yield from measured.deliveries
    yield from measured.returned
    yield from (play for play in (measured.filled, measured.flood) if play is not None)


def _copies(delivery: Delivery) -> dict[str, int]:
    """Packets that left more often than they came, at a load of which none was lost; recorded by QEMU."""
    if not delivery.returned or delivery.intended_load is None:
        return {}
    more = (delivery.arrived.get(name, 0) - offered for name, offered in delivery.offered.items())
    return {"sent more than once": sum(max(0, count) for count in more)}


def logged(measured: Measured) -> str | None:
    """That the ruleset's lines in the log kept the DUT from its packets, in words; None if they did not."""
    share = sum(measured.perturbed_by.get(name, 0.0) for name in LOG_READERS)
    if share < CAUSE or not measured.problems:
        return None
    return f"reading the log of packets that the ruleset makes took {share:.0%} of the DUT's other time"
