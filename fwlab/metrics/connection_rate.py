# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections: how many the DUT carries in a busy second, and whether all complete at a rate that it can carry.

Flat out is a closed loop: a fixed number of connections is open, and when one has fetched its object the next begins.
Nothing is lost, and the loop runs as fast as its slowest part. That must be the DUT, which is throttled until it is
never idle. Connections go through the loop in waves, so a window of the DUT's clock may see more of them begin than
end, but it always sees packets. So a trial counts packets, and converts them by the packets per connection of the whole
run.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fwlab.dut.protocol import Collected, Window
from fwlab.generator.protocol import ConnectionLoad, TcpEndpoints, traffic_guard
from fwlab.generator.tcp_config import answers
from fwlab.judge.statistics import scale
from fwlab.metrics.measurement import (
    CONNECTIONS,
    MeasurableMetric,
    MeasurementSpec,
    MeasuringSession,
    Nodes,
    Phase,
    Step,
    require,
)
from fwlab.metrics.saturation import Attempt
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure, DeadlineExceeded
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Deliveries, Measured, Overload, TestbedFacts
from fwlab.model.trial import Clients, Delivery, TcpTrial

#: A trial in which the DUT was idle for more than this share is not valid. Any pause of the two endpoints lets a closed
#: loop run dry for a moment. Cost is counted by packets of a busy second, and at this share it changes by 0.3 %.
MAX_IDLE_LOOP = 0.02
#: A trial on the virtual testbed in which non-packet work took more than this share is perturbed: after a
#: pause the first packets are handled outside of ksoftirqd. Trials with 3 % of that lie among those with none.
MAX_OTHER_LOOP = 0.03
#: Minimum number of the clients' packets in a trial: some 400 connections.
MIN_PACKETS = 2000
#: The loop has settled after this time (s of the DUT's clock).
SETTLE_S = 0.25
#: How many idle trials, for each wanted one, end the attempt at a level, and at the last level.
IDLE_AT_A_LEVEL, IDLE_AT_LAST_LEVEL = 2, 4
#: Largest difference between the answers that the DUT and the clients counted, as a share.
MAX_APART = 0.02
#: Retransmitted segments per connection, at most; beyond that they determine the figure. TRex waits only half a second.
#: The kernel waits RTO_MIN_S, and a very busy host may take longer. In a flood segments are lost, so wrk's
#: retransmissions say nothing there.
MAX_RETRANSMITTED = {"trex": 0.2, "wrk": 0.02}
#: A trial at a rate has this share of the connections that the clients completed flat out, for about this time (s).
LIGHT, LIGHT_S = 0.25, 4.0
#: Background traffic of the light rate alone is also watched flat out for this long (real seconds), outside of trials.
WATCHED_S = 2.0

T = TypeVar("T")


class ConnectionRate(MeasurableMetric):
    """New TCP connections per busy second that are completed; on the virtual testbed on the reference CPU."""

    name = "connections"
    unit = "cps"
    position = 20
    display = Display("connections per second", "connections/s", table="ratio")
    tolerance = Tolerance(share=0.03, ratio=0.05)
    needs_clock = True
    traffic = CONNECTIONS
    min_busy = 1 - MAX_IDLE_LOOP
    interleaved = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [trial.completed / trial.busy_s * scale(testbed) for trial in measured.tcp if trial.busy_s > 0]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [CONNECT]

    def trials(self, measured: Measured) -> Sequence[TcpTrial]:
        return measured.tcp

    def reservations(self, measured: Measured) -> list[str]:
        if any(clients.program == "trex" for clients in measured.clients):
            return ["TRex opened these connections, of fewer packets each; the range was measured with wrk's"]
        return []


METRIC = ConnectionRate()


@dataclass(frozen=True)
class Background:
    """What was played alongside the connections, and what became of it."""

    delivery: Delivery
    pps: float
    limited: str | None


@dataclass(frozen=True, kw_only=True)
class FlatOut(Attempt[Window]):
    """One run flat out: its windows, what the clients counted, and what crossed the DUT in the whole run.

    packets  packets that came in on each of the DUT's links
    answers  answers that the DUT forwarded
    """

    clients: Clients
    packets: list[int]
    answers: float
    background: Background | None

    def trials(self) -> list[TcpTrial]:
        """The valid windows as trials. If background traffic uses the first link, only the last link is counted."""
        first = len(self.packets) - 1 if self.background else 0
        # wrk lets all connections end. TRex has some open when it is stopped: half of them count.
        # In a flood acknowledgements are lost and some answers cross the DUT twice: no more ended than began.
        connections = (self.clients.opened + min(self.answers, self.clients.opened)) / 2
        each = connections / max(1, sum(self.packets[first:]))  # none, if the ruleset drops all
        return [
            TcpTrial(
                duration_s=window.duration_s,
                busy_s=window.busy_s,
                completed=round(each * sum(window.packets[first:]), 2),
                concurrent=self.clients.concurrent,
                packets=sum(window.packets),
                modelled=window.modelled,
            )
            for window in self.valid
        ]

    def problems(self) -> list[str]:
        """What the counts of the DUT and of the clients do not agree on, and answers that came too late.

        Only the DUT counts answers of connections that were cut off at the end, and answers that crossed it twice.
        """
        problems = []
        counted, more = self.clients.completed, self.clients.concurrent + self.clients.retransmitted
        if not -MAX_APART * counted <= self.answers - counted <= MAX_APART * counted + more:
            problems.append(f"{self.answers:.0f} answers crossed the DUT, the clients counted {counted}")
        again, opened = self.clients.retransmitted, self.clients.opened
        trex = self.clients.program == "trex"
        if (trex or not self.background) and again > MAX_RETRANSMITTED["trex" if trex else "wrk"] * opened:
            problems.append(f"{again} segments were retransmitted for {opened} connections: answers came too late")
        return problems


def measure(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Trials flat out; if `delivered` is asked for and nothing is in doubt, then one at a light rate."""
    nodes = session.nodes
    connections = require(nodes.store.connections(spec.traffic_name), "connections")
    if connections.background is not None and connections.background_flat_out:
        nodes.engine.use(nodes.store, connections.background)
    else:
        # The clients need the generator's link and its CPU, and an engine may hold both.
        nodes.engine.close()
    nodes.sink.load_counters(nodes.classes, connections)
    wanted = spec.trial.count
    with nodes.tcp(connections) as endpoints:
        endpoints.connect()
        search = session.saturation("closed loop").search(
            lambda level: _flat_out(nodes, endpoints, spec, level), wanted
        )
        flat = search.attempt
        doubts = flat.problems() if len(flat.valid) == wanted else [] if flat.crowded else [_completed(flat.clients)]
        found = search.added_to(so_far).hindered(doubts)
        clients, background, watched = [flat.clients], flat.background, []
        if spec.asks_for("delivered") and not found.problems:
            light, background = _at_light_rate(nodes, endpoints, flat.clients)
            clients.append(light)
            if background and not connections.background_flat_out:
                watched = _watched(nodes, endpoints, found.throttle_level)
    limited = background and background.limited
    trials = Overload(
        tcp=flat.trials(),
        generator_sent=background.delivery.sent if background else None,
        generator_pps=background.pps if background else None,
    )
    deliveries = [background.delivery, *watched] if background else []
    problems = [f"alongside the connections: {limited}"] if limited else []
    return found.plus(trials, Deliveries(clients=clients, deliveries=deliveries)).troubled(problems)


def _flat_out(nodes: Nodes, endpoints: TcpEndpoints, spec: MeasurementSpec, level: int) -> FlatOut:
    trial, last = spec.trial, level == nodes.levels - 1

    def run() -> tuple[Collected[Window], Clients]:
        nodes.dut.arm(
            windows=trial.count,
            window_s=trial.seconds,
            packets=max(trial.packets, MIN_PACKETS),
            idle_share=MAX_IDLE_LOOP,
            other_share=MAX_OTHER_LOOP if nodes.levels > 1 else 1.0,
            max_unsaturated=(IDLE_AT_LAST_LEVEL if last else IDLE_AT_A_LEVEL) * trial.count,
            settle_s=SETTLE_S,
        )
        with traffic_guard(endpoints.flat_out()) as opening:
            try:
                windows = nodes.dut.collect_by_link(timeout=900)
            except DeadlineExceeded as error:
                raise _explained(error, opening) from error
        return windows, opening.stop()

    before = nodes.dut.received()
    with_flood = endpoints.connections.background_flat_out
    with nodes.throttle(level, loop=True):
        (windows, clients), background = (
            _with_background(nodes, endpoints.connections, run) if with_flood else (run(), None)
        )
    counts = [
        (packets - packets_before, octets - octets_before)
        for (packets, octets), (packets_before, octets_before) in zip(nodes.dut.received(), before, strict=True)
    ]
    return FlatOut(
        *windows,
        clients=clients,
        packets=[packets for packets, _ in counts],
        answers=round(answers(*counts[-1], endpoints.answer_bytes), 2),
        background=background,
    )


def _explained(error: DeadlineExceeded, opening: ConnectionLoad) -> DeadlineExceeded:
    with contextlib.suppress(CannotMeasure):
        return DeadlineExceeded(f"{error.message}: {_completed(opening.stop())}", error.hint)
    return DeadlineExceeded(error.message, error.hint)


def _completed(clients: Clients) -> str:
    """How far the clients came. A DUT that lets few connections begin waits for them most of the time."""
    came = f"the clients completed {clients.completed} connections in {clients.duration_s:.0f} s"
    return f"{came}; if that is few, a limit in the ruleset may be the cause"


def _at_light_rate(nodes: Nodes, endpoints: TcpEndpoints, flat: Clients) -> tuple[Clients, Background | None]:
    """Connections at a rate that the DUT can carry, without throttling."""
    rate = max(5.0, LIGHT * flat.completed / flat.duration_s)
    if endpoints.connections.background is not None:
        nodes.engine.use(nodes.store, endpoints.connections.background)
    return _with_background(
        nodes, endpoints.connections, lambda: endpoints.at_rate(round(rate, 1), max(50, int(rate * LIGHT_S)))
    )


def _watched(nodes: Nodes, endpoints: TcpEndpoints, level: int) -> list[Delivery]:
    """What becomes of the background flat out: a ruleset must not let it in just because trials do without it."""

    def run() -> Clients:
        with traffic_guard(endpoints.flat_out()) as opening:
            time.sleep(WATCHED_S)
            return opening.stop()

    with nodes.throttle(level, loop=True):
        _, background = _with_background(nodes, endpoints.connections, run)
    return [background.delivery] if background else []


def _with_background(nodes: Nodes, connections: Connections, run: Callable[[], T]) -> tuple[T, Background | None]:
    """Run while the declared background traffic is played; the sink counts it by class."""
    if connections.background is None:
        return run(), None
    nodes.sink.set_flows(nodes.store.flows(connections.background))
    nodes.sink.load_counters(nodes.classes, connections)
    with traffic_guard(nodes.engine.start(load=connections.background_pps)) as playback:
        result = run()
    played = playback.stop()
    delivery = Delivery(
        intended_load=connections.background_pps,
        sent=played.sent,
        offered=nodes.store.offered(connections.background, played.sent),
        arrived=nodes.sink.settled_counts(),
    )
    return result, Background(delivery, round(played.rate, 1), played.limited)


#: TCP connections, flat out and at a light rate.
CONNECT = Step(Phase.FLOOD, measure)
