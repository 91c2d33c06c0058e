# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a ruleset does the same to a packet in a flood as at a light load, before the flood and after it.

Capacity is measured in a flood, and what is delivered is counted exactly at a light load. A ruleset that tells the two
apart (by time, by a quota, by a rate) would be cheap in the one and right in the other. So what arrives is counted by
class in the flood as well, and held against the light loads.
"""

from __future__ import annotations

import math

from fwlab.model.results import Measured
from fwlab.model.trial import Delivery

#: Fewer packets of a class in the flood say nothing of it.
FEWEST = 100
#: The share of a class that passes in the flood may differ by so much from that at a light load ...
SYSTEMATIC = 0.02
#: ... and by so many standard deviations of its count: which packets a full ring takes is chance. (Of lab03's 18 own
#: rulesets, results/lab03-ipset, none was further off than 3.3 %, or 0.8 standard deviations.)
DEVIATIONS = 3.0
#: Of a class of which nothing passes at a light load so many packets may arrive in the flood, and such a share.
STRAY, STRAY_SHARE = 2, 0.0001
#: Where the sink counted a smaller share of what the DUT sent on, it says too little of the classes.
COUNTED = 0.5


def changes(measured: Measured) -> dict[str, str]:
    """By traffic class, what the ruleset does to it at one time and not at another; empty for an honest ruleset."""
    found: dict[str, str] = {}
    if len(measured.deliveries) < 3:
        return found
    first, again, *_, last = measured.deliveries
    for name, offered in last.offered.items():
        before, after, light = first.delivered(name), again.delivered(name), last.delivered(name)
        if before is not None and after is not None and _differ(before, after, first.offered[name]):
            verb = "blocks" if after < before else "lets through"
            found[name] = f"it {verb} {name} after the flood and not before it"
        elif offered and measured.flood is not None and (verb := _in_flood(measured.flood, name, light)):
            found[name] = f"it {verb} {name} in the flood and not at a light load"
    return found


def _differ(before: float, after: float, packets: int) -> bool:
    """The same packets, and nothing is lost but by the ruleset: only what a ruleset leaves to chance scatters."""
    share = (before + after) / 2
    return abs(before - after) > SYSTEMATIC / 2 + 2 * DEVIATIONS * math.sqrt(max(0.0, share * (1 - share)) / packets)


def _in_flood(flood: Delivery, name: str, light: float) -> str | None:
    """What it does otherwise in the flood; None where nothing, or where too few packets were seen."""
    if not flood.sent or not flood.taken:
        return None
    taken = flood.taken * flood.offered.get(name, 0) / flood.sent
    counted = sum(flood.arrived.values())
    if taken < FEWEST or (flood.sent_on and counted < COUNTED * flood.sent_on):
        return None
    passed = flood.passed(name)
    if light == 0:
        return "lets through" if flood.arrived.get(name, 0) > STRAY + STRAY_SHARE * taken else None
    allowed = SYSTEMATIC * light + DEVIATIONS * math.sqrt(light / taken)
    if passed < light - allowed:
        return "blocks"
    return "lets through" if passed > light + allowed else None
