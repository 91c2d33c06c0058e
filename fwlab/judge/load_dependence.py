# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a ruleset treats a packet alike in a flood and at a light load, and before the flood and after it.

Capacity is measured in a flood; delivery is counted exactly, at a light load. A ruleset that distinguishes the two (by
time, by a quota, by a rate) could be cheap in one and correct in the other. So arrivals in the flood are counted by
class as well, and compared with the light loads.
"""

import math

from fwlab.model.results import Measured
from fwlab.model.trial import Delivery

#: With fewer packets of a class in the flood, the class is not compared.
FEWEST = 100
#: The share of a class that passes in the flood may differ by so much from that at a light load ...
SYSTEMATIC = 0.02
#: ... and by so many standard deviations of its count: which packets a full ring takes is chance. (Of lab03's 18 own
#: rulesets, results/lab03-ipset, none was further off than 3.3 %, or 0.8 standard deviations.)
DEVIATIONS = 3.0
#: Of a class that is blocked at a light load, so many packets plus this share may arrive in the flood.
STRAY, STRAY_SHARE = 2, 0.0001
#: A class of which a light load delivers a smaller share is not compared in the flood. A full ring takes packets in
#: bursts, and those that pass lie together in the traffic, so the share that passes scatters (8.7 % against 11 % with
#: one-range of lab04's ex5, results/lab04-nftables). No check accepts such a share, so nothing is gained by it.
WHOLE = 0.99
#: If the sink counted a smaller share of what the DUT sent on, its counts are not compared.
COUNTED = 0.5
#: The key of what is found in all classes together: the DUT counts what it sends on, but not by class.
ALL_CLASSES = ""


def changes(measured: Measured) -> dict[str, str]:
    """By traffic class, how the ruleset treats it differently at different times; empty if it does not."""
    changed: dict[str, str] = {}
    if len(measured.deliveries) < 3:
        return changed
    first, again, *_, last = measured.deliveries
    for name, offered in last.offered.items():
        before, after, light = first.delivered(name), again.delivered(name), last.delivered(name)
        if before is not None and after is not None and _differ(before, after, first.offered[name]):
            verb = "blocks" if after < before else "lets through"
            changed[name] = f"it {verb} {name} after the flood and not before it"
        elif offered and measured.flood is not None and (change := _in_flood(measured.flood, name, light)):
            changed[name] = f"it {change} {name} in the flood and not at a light load"
    if not changed and measured.flood is not None and _sends_on_less(measured.flood, last):
        changed[ALL_CLASSES] = "it blocks packets in the flood and not at a light load"
    return changed


def _differ(before: float, after: float, packets: int) -> bool:
    """Whether two shares of the same packets differ. Only a ruleset that drops at random makes them scatter."""
    share = (before + after) / 2
    return abs(before - after) > SYSTEMATIC / 2 + 2 * DEVIATIONS * math.sqrt(max(0.0, share * (1 - share)) / packets)


def _in_flood(flood: Delivery, name: str, light: float | None) -> str | None:
    """What the ruleset does only in the flood; None if nothing, or if too few packets were counted."""
    if light is None or 0 < light < WHOLE or not flood.sent or not flood.taken:
        return None
    taken = flood.taken * flood.offered.get(name, 0) / flood.sent
    arrived, counted = flood.arrived.get(name, 0), sum(flood.arrived.values())
    if taken < FEWEST or (flood.sent_on and counted < COUNTED * flood.sent_on):
        return None
    if light == 0:
        return "lets through" if arrived > STRAY + STRAY_SHARE * taken else None
    # A sink that is too slow for a moment misses large frames first, so all that it missed may be of this class.
    missed = max(0, (flood.sent_on or 0) - counted)
    return "blocks" if arrived + missed < light * taken - _allowed(light * taken) else None


def _sends_on_less(flood: Delivery, last: Delivery) -> bool:
    """Whether the DUT sends on less of what it receives than at a light load. No count of the sink's matters here."""
    shares = {name: last.delivered(name) or 0.0 for name, offered in flood.offered.items() if offered}
    if not flood.sent_on or not flood.sent or not flood.taken or any(0 < share < WHOLE for share in shares.values()):
        return False
    expected = sum(share * flood.offered[name] for name, share in shares.items()) * flood.taken / flood.sent
    return expected >= FEWEST and flood.sent_on < expected - _allowed(expected)


def _allowed(packets: float) -> float:
    """By how many packets a count may fall short of so many expected."""
    return SYSTEMATIC * packets + DEVIATIONS * math.sqrt(packets)
