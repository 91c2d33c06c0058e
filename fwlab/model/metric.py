# SPDX-License-Identifier: GPL-2.0-or-later
"""What can be measured, and in which unit."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    """A figure that a case yields.

    capacity     packets per busy second that the DUT processes under overload (pps). On the virtual
                 testbed normalised to the reference CPU of one instruction per nanosecond.
    connections  new TCP connections per busy second that are completed through the DUT (cps), likewise.
    load_time    seconds of DUT time that the ruleset takes to load (s), normalised likewise.
    delivered    share of a traffic class that reaches the sink at a load that the DUT can carry (ratio).
    survival     share of a traffic class that reaches the sink while the DUT is offered a multiple of what
                 it can forward (ratio).
    entries      addresses that the DUT holds in sets, maps and rules after loading (count).
    states       connections that the DUT tracks after a counted number of packets (count).
    state_bytes  kernel memory that one of them takes (bytes).
    generator    packets per second that left the generator flat out, by the host's clock (pps). It says whether
                 the generator was the limit, differs from host to host, and is never judged.
    """

    CAPACITY = "capacity"
    CONNECTIONS = "connections"
    LOAD_TIME = "load_time"
    DELIVERED = "delivered"
    SURVIVAL = "survival"
    ENTRIES = "entries"
    STATES = "states"
    STATE_BYTES = "state_bytes"
    GENERATOR = "generator"

    @property
    def unit(self) -> str:
        return _UNITS[self]

    @property
    def portable(self) -> bool:
        """Whether the virtual testbed gives the same figure on any host."""
        return self is not Metric.GENERATOR

    @property
    def needs_clock(self) -> bool:
        """Whether an absolute range holds only for the clock on which it was measured."""
        return self in (Metric.CAPACITY, Metric.CONNECTIONS, Metric.LOAD_TIME)


_UNITS = {
    Metric.CAPACITY: "pps",
    Metric.CONNECTIONS: "cps",
    Metric.LOAD_TIME: "s",
    Metric.DELIVERED: "ratio",
    Metric.SURVIVAL: "ratio",
    Metric.ENTRIES: "count",
    Metric.STATES: "count",
    Metric.STATE_BYTES: "bytes",
    Metric.GENERATOR: "pps",
}
