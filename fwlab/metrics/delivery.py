# SPDX-License-Identifier: GPL-2.0-or-later
"""Delivered: how much of a counted number of packets reaches the sink, at a load that the DUT can carry.

A busy host may stop a node long enough for a ring to overflow. The firewall did not drop those packets, so they must
not affect a mark. The DUT counts what it receives and what it sends, so losses before it and behind it are known. A
play that lost packets there is repeated at a smaller load.

On the virtual testbed the load is one in the DUT's own time (fwlab/generator/pacing), so nothing is lost before the
DUT, and a ruleset that counts by time meets the same packets at the same times on every host.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from fwlab.metrics.capacity import FLOOD, busy_rates
from fwlab.metrics.connection_rate import CONNECT
from fwlab.metrics.measurement import (
    ANY_TRAFFIC,
    LIGHT_PACKETS,
    MeasurableMetric,
    MeasurementSpec,
    MeasuringSession,
    Nodes,
    Phase,
    Step,
    link_counters,
)
from fwlab.metrics.plays import RATE_PACKETS, SETTLED_S, STRAY, Passage, nothing, play, play_recorded, real_rate
from fwlab.model.errors import CannotMeasure
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Deliveries, Measured, TestbedFacts
from fwlab.model.trial import Delivery

#: Loads of a play, as shares of what the DUT carried in real time; the next one if packets were lost on the way.
LIGHT = (1 / 4, 1 / 10, 1 / 25, 1 / 60, 1 / 60)
#: A play takes about this long, in real seconds; its packets are within these bounds.
DELIVERY_S = 4.0
DELIVERY_PACKETS = (256, LIGHT_PACKETS)
#: Before the flood it is not known what the DUT carries: few enough packets for its ring to hold, at these loads (pps);
#: the next one if packets were lost on the way.
FIRST_PACKETS, FIRST_LOADS = 960, (8000.0, 2000.0, 500.0, 125.0)
#: The first of these loads in the DUT's own time (pps of its clock); the others are in proportion. Where a table of
#: connections was filled before, it is the load of that: who comes later must not be known by coming slower.
FIRST_PACED, FIRST_FILLED = 4000.0, 20_000.0
#: A play in the DUT's own time takes about this long (s of the DUT's clock).
PACED_S = 0.5
#: Number of extra polls for late packets.
LOOKS_AGAIN = 10


class Delivered(MeasurableMetric):
    """Share of a traffic class that reaches the sink at a load that the DUT can carry."""

    name = "delivered"
    unit = "ratio"
    position = 40
    display = Display("delivered", "%", 100.0, significant=5, trimmed=True)  # 100.05 % must not read 100.0 %
    tolerance = Tolerance(absolute=0.0005)
    traffic = ANY_TRAFFIC
    by_class = True
    invalidated_by = "own class"

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        """One share of all plays together: a median would hide what only one of them shows."""
        offered = sum(d.offered.get(traffic_class, 0) for d in measured.deliveries)
        arrived = sum(d.arrived.get(traffic_class, 0) for d in measured.deliveries)
        shares: list[float | None] = [arrived / offered] if offered else []
        if not traffic_class:  # of connections, and not of their background packets
            shares += [clients.delivered for clients in measured.clients if clients.intended_load is not None]
        return [share for share in shares if share is not None]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        if played == "connections":
            return [CONNECT]
        return [FLOOD, AFTER_FLOOD] if spec.load_dependent else [BEFORE_FLOOD, FLOOD, AFTER_FLOOD]


def deliver_few(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """A few packets before the flood and after it: a ruleset must not treat their classes differently."""
    return _with_delivery(session, spec, so_far, first_plays(session.nodes, spec))


def _with_delivery(
    session: MeasuringSession, spec: MeasurementSpec, so_far: Measured, plays: Sequence[tuple[float, int]]
) -> Measured:
    delivery, problems = counted(session.nodes, spec, plays)
    return with_losses(session.nodes, so_far.plus(Deliveries(deliveries=[delivery])), problems)


def with_losses(nodes: Nodes, so_far: Measured, problems: list[str]) -> Measured:
    """The result and these problems. The host loses no packet of a load in the DUT's own time, so a ruleset may."""
    return so_far.troubled(problems) if nodes.pacing is None else so_far.hindered(problems)


def first_plays(nodes: Nodes, spec: MeasurementSpec) -> list[tuple[float, int]]:
    """Light loads (pps), the next of which is tried if packets were lost on the way, and the few packets of each."""
    paced = FIRST_FILLED if spec.state_packets else FIRST_PACED
    scale = 1.0 if nodes.pacing is None else paced / FIRST_LOADS[0]
    return [(scale * load, FIRST_PACKETS) for load in FIRST_LOADS]


def deliver(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Play at a light load and count by class what arrives."""
    if session.nodes.pacing is None:
        carried, seconds = carried_in_flood(so_far, session.nodes.ring) or real_rate(session.nodes), DELIVERY_S
    else:
        carried, seconds = min(busy_rates(so_far), default=FIRST_PACED), PACED_S
    low, high = DELIVERY_PACKETS
    loads = [max(20.0, share * carried) for share in LIGHT]
    plays = [(load, int(min(high, max(low, load * seconds)))) for load in loads]
    return _with_delivery(session, spec, so_far, plays)


def counted(
    nodes: Nodes,
    spec: MeasurementSpec,
    plays: Sequence[tuple[float, int]],
    *,
    then: Callable[[], object] = nothing,
) -> tuple[Delivery, list[str]]:
    """(load, packets) of one play after the other, until all were sent in time and only the ruleset drops packets.

    then  as in `play`, at the end of each
    """
    if nodes.recording is not None:
        return _deliver_recorded(nodes, spec, plays, then)
    if nodes.store.nat(spec.traffic_name) is not None:
        raise CannotMeasure(
            "translated packets are known only on socket links, where QEMU records them", "unset FWLAB_LINK"
        )
    for load, count in plays:
        nodes.dut.drain()  # what a flood left in the ring would be counted
        nodes.sink.load_counters(nodes.classes)
        passage = play(nodes, spec.traffic_name, load, count, then=then)
        offered = nodes.store.offered(spec.traffic_name, passage.sent)
        passage, arrived = _arrived(nodes, passage, offered)
        lost_behind = max(0, passage.sent_on - sum(arrived.values()))
        if passage.lost_before + lost_behind == 0 and not passage.limited:
            break
    problems = _problems(passage, count)
    if more := [name for name, number in arrived.items() if number > offered.get(name, 0)]:
        problems.append(f"more packets of {more[0]} arrived than were offered")
    # As many as may be the DUT's own, but if a class lacks no more than these, they may well be its packets.
    missing = [offered.get(name, 0) - count for name, count in arrived.items()]
    if lost_behind > STRAY or any(0 < count <= lost_behind for count in missing):
        problems.append(f"{lost_behind} of {passage.sent_on} packets were lost between the DUT and the sink")
    delivery = Delivery(
        intended_load=round(load, 1),
        sent=passage.sent,
        offered=offered,
        arrived=arrived,
    )
    return delivery, problems


def _deliver_recorded(
    nodes: Nodes, spec: MeasurementSpec, plays: Sequence[tuple[float, int]], then: Callable[[], object]
) -> tuple[Delivery, list[str]]:
    """The same, where QEMU sees each frame that leaves the DUT: none is lost behind it."""
    for load, count in plays:
        passage, sent = play_recorded(nodes, spec.traffic_name, load, count, then=then)
        if passage.lost_before == 0 and not passage.limited:
            break
    delivery = Delivery(
        intended_load=round(load, 1),
        sent=passage.sent,
        offered=nodes.store.offered(spec.traffic_name, passage.sent),
        arrived=sent.arrived(nodes.classes),
        returned=sent.returned,
        foreign=sent.foreign,
    )
    return delivery, _problems(passage, count)


def _problems(passage: Passage, count: int) -> list[str]:
    return [*([passage.limited] if passage.limited else []), *passage.unsent(count), *passage.losses()]


def _arrived(nodes: Nodes, passage: Passage, offered: dict[str, int]) -> tuple[Passage, dict[str, int]]:
    """The passage, and what arrived of each class, once both are final.

    The DUT counts a packet as sent when its NIC reports it back. On a busy host the last packets may be late for that
    and at the sink alike, and the counts of both agree before they are complete. So if a class has arrived in part,
    both must stay the same for a while.
    """
    arrived = nodes.sink.settled_counts(passage.sent_on)
    for _ in range(LOOKS_AGAIN):
        if not any(0 < count < offered.get(name, 0) for name, count in arrived.items()):
            break
        time.sleep(SETTLED_S)
        earlier = passage, arrived
        passage = replace(passage, sent_on=link_counters(nodes)[1] - passage.before[1])
        arrived = nodes.sink.settled_counts(passage.sent_on)
        if (passage, arrived) == earlier:
            break
    return passage, arrived


def carried_in_flood(measured: Measured, ring: int) -> float | None:
    """Packets per real second that the DUT processed in the flood; None if it was slowed, or too few were counted."""
    flood, pps = measured.flood, measured.generator_pps
    if measured.throttle_level or flood is None or flood.taken is None or not pps:
        return None
    # What lay in the ring at the end of the flood was processed after it.
    processed = flood.taken - ring
    return processed * pps / flood.sent if processed > RATE_PACKETS else None


def _after_flood(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """A ruleset that may depend on the load has no few packets to compare."""
    if not spec.load_dependent:
        so_far = deliver_few(session, spec, so_far)
    return deliver(session, spec, so_far)


BEFORE_FLOOD = Step(Phase.BEFORE_FLOOD, deliver_few)
AFTER_FLOOD = Step(Phase.AFTER_FLOOD, _after_flood, despite_problems=False)


class Passed(MeasurableMetric):
    """Share of the first packets of a traffic, whatever their class, that reaches the sink.

    They are few enough for the DUT's ring to hold. Flows that send in turn have equally many of them if their number
    divides FIRST_PACKETS; then the share is that of the flows that pass.
    """

    name = "passed"
    unit = "ratio"
    position = 42
    display = Display("packets that pass", "%", 100.0, significant=5, trimmed=True)
    tolerance = Tolerance(absolute=0.0005)

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        """One share, of the first play: later ones may be longer."""
        return [sum(play.arrived.values()) / play.sent for play in measured.deliveries[:1] if play.sent]

    def counts(self, measured: Measured, traffic_class: str = "") -> tuple[int, int] | None:
        plays = [play for play in measured.deliveries[:1] if play.sent]
        return (min(plays[0].sent, sum(plays[0].arrived.values())), plays[0].sent) if plays else None

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [BEFORE_FLOOD]


DELIVERED = Delivered()
METRIC = (DELIVERED, Passed())
