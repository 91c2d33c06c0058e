# SPDX-License-Identifier: GPL-2.0-or-later
"""One trial: one load, one duration, counts. Ratios and rates are derived, never stored."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from fwlab.model.declared import Frozen

#: What a model of a core counted, by the name that it gives to each count.
Counts = dict[str, Annotated[int, Field(ge=0)]]


class _Watched(Frozen):
    """A window of the DUT's clock, which a model of a core may have watched.

    duration_s  its length, and busy_s for how long of it the DUT's CPU was not idle (seconds)
    modelled    what the model counted meanwhile; written only if there was one
    """

    duration_s: float = Field(ge=0)
    busy_s: float = Field(ge=0)
    modelled: Counts | None = None

    @property
    def busy_share(self) -> float:
        return self.busy_s / self.duration_s if self.duration_s else 0.0

    @model_serializer(mode="wrap")
    def _without_a_model(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self.modelled is None:
            data.pop("modelled", None)
        return data


class Trial(_Watched):
    """Counts of one trial (RFC 2544, section 23; here under overload: RFC 2285, FRMOL).

    duration_s     length, in seconds of the DUT's clock
    busy_s         for how long of it the DUT's CPU was not idle
    processed      packets that the DUT took from its receive ring, whether it forwarded or dropped them
    forwarded      packets that it sent on
    instructions   that all its CPUs retired meanwhile, by their own counters; None if they have none
    intended_load  packets per second asked of the generator; None: flat out
    """

    processed: int = Field(ge=0)
    forwarded: int = Field(default=0, ge=0)
    instructions: int | None = Field(default=None, ge=0)
    intended_load: float | None = None


class Delivery(Frozen):
    """What became of a counted number of packets, at a load that the DUT can carry or, for survival, above it.

    intended_load  packets per second, by the DUT's clock where that counts instructions, else by the generator's;
              None: flat out
    sent      packets that left the generator
    offered   how many of these belong to each traffic class (from the frame table)
    arrived   packets that reached the sink, by traffic class; of a class that is counted at the generator, those that
              went back there
    returned  packets that went back to the generator, by traffic class, if that was recorded
    errors    ICMP "fragmentation needed" to the generator, by the class of the packet that they are about, if recorded
    foreign   packets that left the DUT and are not the traffic's as routing leaves them, by what is wrong with them
    taken     packets that the DUT took from its receive ring, if it could not take all that were sent
    sent_on   packets that the DUT sent, if the sink may have missed some of them; of a play whose returning packets
              count, those that it sent by its first link
    dispersion  of a flood: the index of dispersion of the classes whose packets come in bunches (TrafficStore)
    """

    intended_load: float | None
    sent: int
    offered: dict[str, int]
    arrived: dict[str, int]
    returned: dict[str, int] = {}
    errors: dict[str, int] = {}
    foreign: dict[str, int] = {}
    taken: int | None = None
    sent_on: int | None = None
    dispersion: dict[str, float] = {}

    def delivered(self, traffic_class: str) -> float | None:
        """Share of the class that arrived; None if none of it was offered."""
        offered = self.offered.get(traffic_class, 0)
        return self.arrived.get(traffic_class, 0) / offered if offered else None

    def passed(self, traffic_class: str) -> float | None:
        """Share of the class that arrived, of what the DUT received of it. A full ring treats all classes alike."""
        delivered, counted = self.delivered(traffic_class), sum(self.arrived.values())
        if delivered is None or not self.taken:
            return None
        # So does the link to a sink that is too slow for a moment.
        missed = self.sent_on / counted if self.sent_on and counted else 1.0
        return delivered * self.sent / self.taken * missed

    def survived(self, traffic_class: str, processed_pps: float) -> float | None:
        """Share of the class that arrives at the intended load, if the DUT processes packets at this rate.

        Below that load it receives every packet. Above it the ring is always full, and it receives what it processes.
        """
        passed = self.passed(traffic_class)
        if passed is None or self.intended_load is None:
            return None
        # Not exact: `passed` assumes that the DUT received the classes in the proportion in which they were offered.
        return min(1.0, min(1.0, processed_pps / self.intended_load) * passed)


class TcpTrial(_Watched):
    """TCP connections through the DUT under overload, counted by what crossed the DUT itself.

    duration_s, busy_s  length in seconds of the DUT's clock, and for how long of it the DUT was not idle
    completed   answers, one per connection, that crossed the DUT in that time
    concurrent  connections that were open at a time
    packets     packets that the DUT received in that time, on both its links
    """

    completed: float = Field(ge=0)
    concurrent: int = Field(ge=0)
    packets: int = Field(ge=0)


class Clients(Frozen):
    """What the clients counted while they opened connections, flat out or at a rate.

    program     what opened them
    opened      connections that they began
    completed   how many of these fetched the whole object
    failed      refused, reset, timed out, cut short or answered with an error
    retransmitted  segments that either end retransmitted
    concurrent  the most that were open at a time
    duration_s  length, in seconds of the clients' clock
    intended_load  connections per second asked for; None: flat out, with `concurrent` open all the time
    """

    program: Literal["wrk", "httperf", "trex"]
    opened: int = Field(ge=0)
    completed: int = Field(ge=0)
    failed: int = Field(ge=0)
    retransmitted: int = Field(ge=0)
    concurrent: int = Field(ge=0)
    duration_s: float = Field(ge=0)
    intended_load: float | None = None

    @property
    def delivered(self) -> float | None:
        """Share of the opened connections that completed; None if none was opened."""
        return self.completed / self.opened if self.opened else None


class FiveTuple(NamedTuple):
    """The packets of one direction between two ends. `protocol` is IP's number of TCP or UDP."""

    protocol: int
    source: str
    source_port: int
    destination: str
    destination_port: int


class Tracked(Frozen):
    """Packets of a light load, and how many of them connection tracking has counted, both by traffic class."""

    offered: dict[str, int]
    counted: dict[str, int]


class States(Frozen):
    """The DUT's connection table after a counted number of packets.

    played     packets that were played
    held       entries in the table after that
    most       the table's limit (nf_conntrack_max)
    buckets    of its hash table
    flooded    packets that the DUT took in a flood on an empty table, in an exercise ...
    in_flood   ... and entries in the table after that
    counted    of the packets of the flood, those that these entries have counted, where it was asked for
    object_bytes, slab_bytes, bucket_bytes  size of one entry, memory of all slabs, memory of the hash table
    """

    played: int = Field(ge=0)
    held: int = Field(ge=0)
    most: int = Field(ge=0)
    buckets: int = Field(ge=0)
    object_bytes: int = Field(ge=0)
    slab_bytes: int = Field(ge=0)
    bucket_bytes: int = Field(ge=0)
    flooded: int | None = Field(default=None, ge=0)
    in_flood: int | None = Field(default=None, ge=0)
    counted: int | None = Field(default=None, ge=0)

    @property
    def bytes_each(self) -> float | None:
        """Memory of slabs and hash table per entry; None if there is no entry."""
        return (self.slab_bytes + self.bucket_bytes) / self.held if self.held else None


class PacedTrial(Frozen):
    """One part of a play: frames that passed the DUT's NICs in this time.

    duration_s  seconds of the DUT's clock
    offered     frames of the traffic that reached its first NIC, by traffic class; `other` belong to none
    forwarded   frames that it sent by its last NIC
    returned    frames that it sent by its first NIC
    """

    duration_s: float = Field(gt=0)
    offered: dict[str, int]
    forwarded: dict[str, int]
    returned: dict[str, int] = {}

    def left(self, traffic_class: str) -> int:
        """Frames of the class that left the DUT, by either NIC."""
        return self.forwarded.get(traffic_class, 0) + self.returned.get(traffic_class, 0)

    def survived(self, traffic_class: str) -> float | None:
        """Share of the class that left the DUT, by either NIC; None if none of it was offered."""
        offered = self.offered.get(traffic_class, 0)
        return self.left(traffic_class) / offered if offered else None


class PacedPlay(Frozen):
    """One play at a constant load, and its account: every frame was offered, and left the DUT or did not.

    load       packets per second of the DUT's clock
    tick_s     the frames of one tick reached the DUT together
    offered    frames that were to reach the DUT's first NIC
    received   frames that did
    forwarded, returned  frames that left by its last and its first NIC, by class, until it had processed all it took
    errors     ICMP "fragmentation needed" that left by the first NIC, by the class of the frame that they are about
    foreign    frames that left and are not the traffic's as routing leaves them, by what is wrong with them
    taken      frames that it took from its receive ring; the ring had no room for the rest
    trials     one after the other, within the play
    watched    what the DUT itself saw of the play; None if it did not look
    transit_s  from the first NIC to the last, by the DUT's clock: for frames of all trials, in equal steps from the
               shortest to the longest time; empty unless they were asked for
    problems   why the load was not as it should have been
    suspects   those of the problems that a ruleset may cause; they are not kept
    """

    load: float = Field(gt=0)
    tick_s: float = Field(gt=0)
    offered: int = Field(ge=0)
    received: int = Field(ge=0)
    forwarded: dict[str, int]
    returned: dict[str, int]
    errors: dict[str, int] = {}
    foreign: dict[str, int] = {}
    taken: int | None = None
    trials: list[PacedTrial]
    watched: Trial | None = None
    transit_s: list[float] = []
    problems: list[str] = []
    suspects: list[str] = Field(default=[], exclude=True)
