# SPDX-License-Identifier: GPL-2.0-or-later
"""One trial: one load, one duration, counts. Ratios and rates are derived, never stored."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Timed(BaseModel):
    """A window of the DUT's clock: its length in seconds, and of these how long the DUT's CPU was not idle."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    duration_s: float = Field(ge=0)
    busy_s: float = Field(ge=0)

    @property
    def busy_share(self) -> float:
        return self.busy_s / self.duration_s if self.duration_s else 0.0


class Trial(_Timed):
    """Counts of one trial (RFC 2544, section 23; here under overload: RFC 2285, FRMOL).

    duration_s     length, in seconds of the DUT's clock
    busy_s         of these, how long the DUT's CPU was not idle
    processed      packets that the DUT took from its receive ring, forwarded or filtered
    forwarded      packets that it sent on
    intended_load  packets per second asked of the generator; None is flat out
    """

    processed: int = Field(ge=0)
    forwarded: int = Field(default=0, ge=0)
    intended_load: float | None = None


class Delivery(BaseModel):
    """What became of a counted number of packets, at a load that the DUT can carry or, for survival, above it.

    intended_load  packets per second asked of the generator; for survival, per second of the DUT's clock; None is
              flat out
    sent      packets that left the generator
    offered   of these, how many belong to each traffic class (from the frame table)
    arrived   packets that reached the sink, by traffic class
    taken     packets that the DUT took from its receive ring, where it could not take all that were sent
    sent_on   packets that it sent on, where the sink may have missed some of them
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    intended_load: float | None
    sent: int
    offered: dict[str, int]
    arrived: dict[str, int]
    taken: int | None = None
    sent_on: int | None = None

    def delivered(self, traffic_class: str) -> float | None:
        """Share of the class that arrived; None where none of it was offered."""
        offered = self.offered.get(traffic_class, 0)
        return self.arrived.get(traffic_class, 0) / offered if offered else None

    def passed(self, traffic_class: str) -> float | None:
        """Share of what the DUT took of the class that arrived. It takes what comes: a full ring knows no classes."""
        delivered, counted = self.delivered(traffic_class), sum(self.arrived.values())
        if delivered is None or not self.taken:
            return None
        # Nor does the link to a sink that is too slow for a moment.
        missed = self.sent_on / counted if self.sent_on and counted else 1.0
        return delivered * self.sent / self.taken * missed

    def survived(self, traffic_class: str, processed_pps: float) -> float | None:
        """Share of the class that arrives at the intended load, from a DUT that processes so many packets a second.

        Below that all is taken in; above it the ring is always full, and as much as is processed is taken.
        """
        passed = self.passed(traffic_class)
        # What the DUT took of the class is its share of all that was taken: near enough, but not to the last packet.
        return None if passed is None else min(1.0, min(1.0, processed_pps / self.intended_load) * passed)


class TcpTrial(_Timed):
    """TCP connections through the DUT under overload, counted by what crossed the DUT itself.

    duration_s, busy_s  seconds of the DUT's clock, and of these how long it was not idle
    completed   answers, one for each connection, that crossed it in that time
    concurrent  connections that were open at a time
    packets     packets that the DUT took in meanwhile, on both its links
    """

    completed: float = Field(ge=0)
    concurrent: int = Field(ge=0)
    packets: int = Field(ge=0)

    @property
    def packets_per_connection(self) -> float | None:
        return self.packets / self.completed if self.completed else None


class Clients(BaseModel):
    """What the clients counted while they opened connections, flat out or at a rate.

    program     what opened them; None in a result that is older than this word
    opened      connections that they began
    completed   of these, how many fetched the whole object
    failed      refused, reset, timed out, cut short or answered with an error
    retransmitted  segments that either end sent again
    concurrent  the most that were open at a time
    duration_s  length, in seconds of the clients' clock
    intended_load  connections per second asked for; None is flat out, with `concurrent` open all the time
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    program: Literal["wrk", "httperf", "trex"] | None = None
    opened: int = Field(ge=0)
    completed: int = Field(ge=0)
    failed: int = Field(ge=0)
    retransmitted: int = Field(ge=0)
    concurrent: int = Field(ge=0)
    duration_s: float = Field(ge=0)
    intended_load: float | None = None

    @property
    def delivered(self) -> float | None:
        """Share that was completed of those that were opened; None where none was."""
        return self.completed / self.opened if self.opened else None


class States(BaseModel):
    """The DUT's connection table after a counted number of packets.

    played     packets that were played
    held       entries in the table after them
    most       the table's limit (nf_conntrack_max)
    buckets    of its hash
    object_bytes, slab_bytes, bucket_bytes  size of one entry, memory of all their slabs, memory of the hash
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    played: int = Field(ge=0)
    held: int = Field(ge=0)
    most: int = Field(ge=0)
    buckets: int = Field(ge=0)
    object_bytes: int = Field(ge=0)
    slab_bytes: int = Field(ge=0)
    bucket_bytes: int = Field(ge=0)

    @property
    def bytes_each(self) -> float | None:
        """Slabs and hash together, for each entry held."""
        return (self.slab_bytes + self.bucket_bytes) / self.held if self.held else None
