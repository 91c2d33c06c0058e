# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT's tables hold: states (tracked connections) after a counted number of packets, and the memory that they
take; entries of rules and sets.

Who gets in meanwhile is another figure: a ruleset may let honest hosts in before an attack, and lock them out in it.
"""

from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType

from fwlab.dut.agent_protocol import TableStates
from fwlab.generator.protocol import traffic_guard
from fwlab.judge.conduct import tracked_in_flood, untracked_in_flood
from fwlab.metrics.delivery import FIRST_FILLED, counted, first_plays, with_losses
from fwlab.metrics.measurement import (
    WITH_OR_WITHOUT,
    MeasurableMetric,
    MeasurementSpec,
    MeasuringSession,
    Nodes,
    Phase,
    Step,
    link_counters,
    require,
)
from fwlab.metrics.plays import RATE_S, once_taken, play, real_rate
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Deliveries, Loading, Measured, StateTable, TestbedFacts
from fwlab.model.trial import FiveTuple, States, Tracked

#: Loads of the plays, as shares of what the DUT carried in real time. A packet lost in its ring leaves no state. If too
#: many were lost, the same packets are played again on top: existing states stay as they are.
LOADS = (0.65, 0.65, 0.3, 0.1)
#: Loads of the plays in the DUT's own time (pps of its clock). A new entry costs some 10 us.
PACED_LOADS = (FIRST_FILLED, 10_000.0, 2_000.0, 400.0)
#: What a host carries varies from second to second, so before a long play the DUT is watched longer: one second for
#: this many packets, up to this time (s). Too small a load takes long, too big a load takes a second play.
PACKETS_A_LOOK, MAX_LOOK_S = 125_000, 4.0
#: A busy host lets the ring overflow now and then. The packets are played again if a larger share than this was lost;
#: a play takes long, so a few lost packets are not worth it.
PLAYED_AGAIN = 0.001
#: If a larger share than this is missing after the last play, the count of states is in doubt. The ranges of a lab
#: should leave room for it.
MAX_LOST = 0.005
#: Minimum number of packets of the flood on an empty table.
MIN_REFILLED = 20_000


class TrackedStates(MeasurableMetric):
    """Connections that the DUT tracks after a counted number of packets."""

    name = "states"
    unit = "count"
    position = 70
    display = Display("tracked connections", whole=True)
    needs = MappingProxyType({"state_packets": "state_packets, the number of packets to play"})

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [] if measured.states is None else [float(measured.states.held)]

    def changed_in_flood(self, measured: Measured, between: tuple[float, float]) -> str | None:
        return tracked_in_flood(measured, between)

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FILL, REFILL] if spec.accounted else [FILL]


class StateBytes(MeasurableMetric):
    """Kernel memory that one tracked connection takes."""

    name = "state_bytes"
    unit = "bytes"
    position = 80
    display = Display("memory of a tracked connection", "bytes")
    tolerance = Tolerance(share=0.015, ratio=0.03)
    needs = TrackedStates.needs

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        each = measured.states.bytes_each if measured.states else None
        return [] if each is None else [each]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FILL]


class Admitted(MeasurableMetric):
    """Share of a traffic class that reaches the sink while the table of connections fills up."""

    name = "admitted"
    unit = "ratio"
    position = 44
    display = Display("admitted while the table fills", "%", 100.0)
    tolerance = Tolerance(absolute=0.01)
    needs = TrackedStates.needs
    by_class = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        share = measured.filled.delivered(traffic_class) if measured.filled else None
        return [] if share is None else [share]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FILL]


def fill(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Play `spec.state_packets` packets from the beginning of the traffic, then count.

    States time out during the plays. All that must be there at the end need timeouts (net.netfilter.*) that are
    longer than all plays together.
    """
    nodes, count = session.nodes, require(spec.state_packets, "state_packets")
    loads = PACED_LOADS if nodes.pacing is not None else _loads(nodes, spec, count)
    tables = list[TableStates]()

    def look() -> None:
        tables.append(nodes.dut.states())

    if spec.asks_for("admitted"):
        filled, problems = counted(nodes, spec, [(load, count) for load in loads], then=look)
        states = States(played=filled.sent, **tables[-1])
        return so_far.plus(StateTable(states=states), Deliveries(filled=filled)).troubled(problems)
    missing = 1.0
    with nodes.dut.blackhole():
        for load in loads:
            passage = play(nodes, spec.traffic_name, load, count, then=look)
            # Chance decides which packets are lost: a packet leaves no state if every play has lost it.
            missing *= passage.lost_before / max(passage.sent, 1)
            if missing <= PLAYED_AGAIN:
                break
    problems = passage.unsent(count)
    if missing > MAX_LOST:
        lost = round(missing * passage.sent)
        problems.append(f"{lost} of {passage.sent} packets were lost before the DUT could track them")
    states = States(played=passage.sent, **tables[-1])
    return with_losses(nodes, so_far.plus(StateTable(states=states)), problems)


def _loads(nodes: Nodes, spec: MeasurementSpec, count: int) -> list[float]:
    """Loads of the plays (pps), by what the DUT carries in real time; the ruleset is loaded again."""
    # Forwarded packets are not needed here, and would cost the host more than a state does. So they are no part of the
    # rate, either.
    with nodes.dut.blackhole():
        carried = real_rate(nodes, min(MAX_LOOK_S, max(RATE_S, count / PACKETS_A_LOOK)))
    # Watching the DUT has left states behind, and modules that hold them.
    nodes.dut.reset()
    nodes.dut.load(spec.files)
    return [max(20.0, share * carried) for share in LOADS]


def refill(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Empty the table, play flat out, and count again: a ruleset must track in a flood what it tracks at a light load.

    Many packets of the flood find no room in the ring, so which flows it tracks is chance.
    """
    nodes, states = session.nodes, so_far.states
    nodes.dut.drain()
    # A limit drops packets of the flood before their entries count them.
    counting = spec.asks_for("tracked") and not spec.load_dependent
    if states is None or not (nodes.dut.count_flows() if counting else nodes.dut.forget_states()):
        return so_far
    with nodes.throttle(so_far.throttle_level), nodes.dut.blackhole(), traffic_guard(nodes.engine.start()) as playing:
        before, _ = once_taken(nodes, 0, link_counters(nodes)[0])
        once_taken(nodes, max(MIN_REFILLED, states.held), before)
        playing.stop()
    nodes.dut.drain()
    flooded, held = link_counters(nodes)[0] - before, nodes.dut.states()["held"]
    packets = sum(nodes.dut.flows().values()) if counting else None
    found = {"flooded": flooded, "in_flood": held, "counted": packets}
    return so_far.plus(StateTable(states=states.model_copy(update=found)))


def track(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Empty the table, play a few packets, and look which of them their entries have counted."""
    nodes = session.nodes
    nodes.dut.drain()
    flows: dict[FiveTuple, int] = {}

    def look() -> None:
        flows.clear()
        flows.update(nodes.dut.flows() if counting else {})

    for load, count in first_plays(nodes, spec):
        counting = nodes.dut.count_flows()
        passage = play(nodes, spec.traffic_name, load, count, then=look)
        if not passage.lost_before:
            break
    counted_of = Counter[str]()
    for (name, flow), packets in nodes.store.five_tuples(spec.traffic_name, passage.sent).items():
        counted_of[name] += min(packets, flows.get(flow, 0))
    tracked = Tracked(offered=nodes.store.offered(spec.traffic_name, passage.sent), counted=dict(counted_of))
    problems = [*passage.unsent(count), *passage.losses("packets were lost before the DUT could track them")]
    return with_losses(nodes, so_far.plus(StateTable(tracked_packets=tracked)), problems)


FILL = Step(Phase.STATES, fill)
REFILL = Step(Phase.STATES_IN_FLOOD, refill, despite_problems=False)
TRACK = Step(Phase.TRACKED, track, despite_problems=False)


class TrackedPackets(MeasurableMetric):
    """Share of a class's packets that entries of the connection table have counted, at a light load.

    A packet that a ruleset exempts from connection tracking is in no entry's count, even where its flow has an entry.
    """

    name = "tracked"
    unit = "ratio"
    position = 72
    display = Display("packets that are tracked", "%", 100.0)
    tolerance = Tolerance(absolute=0.01)
    by_class = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        tracked = measured.tracked_packets
        offered = tracked.offered.get(traffic_class) if tracked else None
        return [tracked.counted.get(traffic_class, 0) / offered] if tracked and offered else []

    def changed_in_flood(self, measured: Measured, between: tuple[float, float]) -> str | None:
        return untracked_in_flood(measured)

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [TRACK]


def _count(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    return so_far.plus(Loading(entries=session.nodes.dut.entries()))


COUNT = Step(Phase.LAST, _count)


class Entries(MeasurableMetric):
    """Rules that a passing packet can meet, and addresses in the sets and maps that rules ask.

    A count, taken when everything else has been measured.
    """

    name = "entries"
    unit = "count"
    position = 60
    display = Display("entries", whole=True)
    traffic = WITH_OR_WITHOUT

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [] if measured.entries is None else [float(measured.entries)]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [COUNT]


METRIC = (TrackedStates(), TrackedPackets(), StateBytes(), Admitted(), Entries())
