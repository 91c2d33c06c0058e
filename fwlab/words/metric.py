# SPDX-License-Identifier: GPL-2.0-or-later
"""What can be measured, and in which unit."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    """A figure that a case yields.

    capacity   packets per busy second that the DUT processes under overload (pps). On the virtual
               testbed normalised to the reference CPU of one instruction per nanosecond.
    load_time  seconds of DUT time that the ruleset takes to load (s), normalised likewise.
    delivered  share of a traffic class that reaches the sink at a load that the DUT can carry (ratio).
    entries    addresses that the DUT holds in sets, maps and rules after loading (count).
    """

    CAPACITY = "capacity"
    LOAD_TIME = "load_time"
    DELIVERED = "delivered"
    ENTRIES = "entries"

    @property
    def unit(self) -> str:
        return {"capacity": "pps", "load_time": "s", "delivered": "ratio", "entries": "count"}[self.value]
