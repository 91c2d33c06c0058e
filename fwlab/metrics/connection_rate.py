# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections: how many the DUT carries in a busy second, and whether all complete at a rate that it can carry.

Flat out it is a closed loop: a fixed number is open, and as soon as one has fetched its object the next begins. So
nothing is lost, and the loop turns as fast as its slowest part: that must be the DUT, which is slowed until it is
never idle. Connections move through the loop in waves, so a window of the DUT's clock may see more beginnings than
ends; it always sees packets. A trial therefore counts those, and one connection is as many as it was in the whole run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fwlab.dut.protocol import Window
from fwlab.generator.protocol import TcpEndpoints
from fwlab.generator.tcp_config import answers
from fwlab.judge.statistics import scale
from fwlab.metrics.measurement import Nodes, Task
from fwlab.metrics.protocol import CONNECTIONS, BaseMetric
from fwlab.metrics.saturation import Attempt, Ladder
from fwlab.metrics.traffic_guard import under_way
from fwlab.model.declared_traffic import Connections
from fwlab.model.metric import Display, Tolerance
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import Clients, Delivery, TcpTrial

#: A trial in which the DUT was idle for more than this share was no overload. Any pause of the two ends lets a closed
#: loop run dry for a moment. Cost is by packets of a busy second, and those are 0.3 % dearer or cheaper at this share.
MOST_IDLE_LOOP = 0.02
#: A trial on the virtual testbed in which something else than packets took more than this share was disturbed: after
#: a pause the first packets are taken outside of ksoftirqd. Trials with 3 % of that lie among those with none.
MOST_OTHER_LOOP = 0.03
#: A trial has so many packets of the clients at least, some 400 connections.
LEAST_PACKETS = 2000
#: The loop has settled after so long (s of the DUT's clock).
SETTLE_S = 0.25
#: Answers that the DUT saw and answers that the clients counted are this far apart at most.
MOST_APART = 0.02
#: So many segments were sent again for each connection at most, or they are the figure. TRex does not wait long; nor
#: does the kernel with a SYN, one second, and a host that is very busy may take longer. Beside a flood some are lost,
#: so there wrk's are no sign of that.
MOST_AGAIN = {"trex": 0.2, "wrk": 0.02}
#: A trial at a rate has this share of the connections that the clients completed flat out, for about so long (s).
LIGHT, LIGHT_S = 0.25, 4.0


class ConnectionRate(BaseMetric):
    """New TCP connections per busy second that are completed; on the virtual testbed on the reference CPU."""

    name = "connections"
    unit = "cps"
    position = 20
    display = Display("connections per second", "connections/s", table="ratio")
    tolerance = Tolerance(share=0.03, ratio=0.05)
    needs_clock = True
    traffic = CONNECTIONS
    least_busy = 1 - MOST_IDLE_LOOP

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [trial.completed / trial.busy_s * scale(testbed) for trial in measured.tcp if trial.busy_s > 0]

    def trials(self, measured: Measured) -> Sequence[TcpTrial]:
        return measured.tcp

    def reservations(self, measured: Measured) -> list[str]:
        if any(clients.program == "trex" for clients in measured.clients):
            return ["TRex opened these connections, of fewer packets each; the range was measured with wrk's"]
        return []


METRIC = ConnectionRate()


@dataclass(frozen=True, kw_only=True)
class Flat(Attempt[Window]):
    """One run flat out: its windows, what the clients counted, and packets and answers that crossed the DUT in all.

    packets  packets that came in on each of the DUT's links
    """

    clients: Clients
    packets: list[int]
    answers: float

    def trials(self, beside: bool) -> list[TcpTrial]:
        """The windows as trials. Where something else is played on the first link, the last one alone is counted by."""
        first = len(self.packets) - 1 if beside else 0
        # wrk lets all end that began. Those that TRex had open when it was stopped did not: half of them, so to speak.
        # Beside a flood acknowledgements are lost, and some answers cross the DUT twice: no more ended than began.
        connections = (self.clients.opened + min(self.answers, self.clients.opened)) / 2
        each = connections / sum(self.packets[first:])
        return [
            TcpTrial(
                duration_s=window.duration_s,
                busy_s=window.busy_s,
                completed=round(each * sum(window.packets[first:]), 2),
                concurrent=self.clients.concurrent,
                packets=sum(window.packets),
            )
            for window in self.kept
        ]


def _besieged(connections: Connections) -> bool:
    """Whether something else is played while the loop turns flat out."""
    return connections.background is not None and connections.background_flat_out


class Connecting:
    """Climbs a ladder of its own: a loop of answers is kept up otherwise than a flood."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._ladder = Ladder(nodes.steps)
        self._limited: str | None = None

    def measure(self, task: Task, found: Measured) -> None:
        """Trials flat out; then, where the task asks what was delivered, one at a light rate."""
        if not task.wants("connections", "delivered"):
            return
        connections = self._nodes.tables.connections(task.traffic)
        if _besieged(connections):
            self._nodes.engine.use(self._nodes.tables, connections.background)
            self._nodes.sink.know(self._nodes.tables.flows(connections.background))
        else:
            # The clients need the generator's link and its CPU, and an engine may hold both.
            self._nodes.engine.close()
        self._nodes.sink.declare(self._nodes.classes, connections)
        with self._nodes.tcp(connections) as both:
            self._overload(both, task, found)
            if task.wants("delivered") and not found.problems:
                self._lightly(both, found)
        if self._limited:
            found.problems.append(f"beside the connections: {self._limited}")

    def _overload(self, both: TcpEndpoints, task: Task, found: Measured) -> None:
        wanted = task.trial.count
        flat = self._ladder.climb(lambda step: self._flat_out(both, task, found, step), wanted, found)
        found.clients = [flat.clients]
        beside = _besieged(both.connections)
        found.tcp = flat.trials(beside)
        if len(flat.kept) == wanted:
            self._compare(flat, found, beside)

    @staticmethod
    def _compare(flat: Flat, found: Measured, beside: bool) -> None:
        """The DUT and the clients, each by its own count. Only the DUT's may have those that were cut off at the end,
        and answers that crossed it a second time.
        """
        counted, more = flat.clients.completed, flat.clients.concurrent + flat.clients.retransmitted
        if not -MOST_APART * counted <= flat.answers - counted <= MOST_APART * counted + more:
            found.problems.append(f"{flat.answers:.0f} answers crossed the DUT, the clients counted {counted}")
        again, opened = flat.clients.retransmitted, flat.clients.opened
        trex = flat.clients.program == "trex"
        if (trex or not beside) and again > MOST_AGAIN["trex" if trex else "wrk"] * opened:
            found.problems.append(f"{again} segments were sent again for {opened} connections: answers came too late")

    def _flat_out(self, both: TcpEndpoints, task: Task, found: Measured, step: int) -> Flat:
        nodes, trial = self._nodes, task.trial
        last = step == nodes.steps - 1
        before = nodes.dut.received()
        meanwhile = self._beside(both.connections, found) if _besieged(both.connections) else contextlib.nullcontext()
        with nodes.slowed(step, loop=True), meanwhile:
            nodes.dut.arm(
                windows=trial.count,
                window_s=trial.seconds,
                packets=max(trial.packets, LEAST_PACKETS),
                idle_share=MOST_IDLE_LOOP,
                other_share=MOST_OTHER_LOOP if nodes.steps > 1 else 1.0,
                most_idle=(4 if last else 2) * trial.count,
                settle_s=SETTLE_S,
            )
            with under_way(both.flat_out()) as opening:
                windows = nodes.dut.collect_by_link(timeout=900)
            clients = opening.stop()
        counts = [
            (packets - packets_before, octets - octets_before)
            for (packets, octets), (packets_before, octets_before) in zip(nodes.dut.received(), before, strict=True)
        ]
        return Flat(
            *windows,
            clients=clients,
            packets=[packets for packets, _ in counts],
            answers=round(answers(*counts[-1], both.answer_bytes), 2),
        )

    def _lightly(self, both: TcpEndpoints, found: Measured) -> None:
        """The DUT at full speed, and connections at a rate that it can carry."""
        flat = found.clients[0]
        rate = max(5.0, LIGHT * flat.completed / flat.duration_s)
        if both.connections.background is not None:
            self._nodes.engine.use(self._nodes.tables, both.connections.background)
        with self._beside(both.connections, found):
            found.clients.append(both.at_rate(round(rate, 1), max(50, int(rate * LIGHT_S))))

    @contextlib.contextmanager
    def _beside(self, connections: Connections, found: Measured) -> Iterator[None]:
        """The declared packets meanwhile, counted by class at the sink; the last such run is the one that is kept."""
        self._limited = None
        if connections.background is None:
            yield
            return
        nodes = self._nodes
        nodes.sink.declare(nodes.classes, connections)
        with under_way(nodes.engine.start(load=connections.background_pps)) as playing:
            yield
        played = playing.stop()
        found.generator_sent, found.generator_pps = played.sent, round(played.rate, 1)
        self._limited = played.limited
        found.deliveries = [
            Delivery(
                intended_load=connections.background_pps,
                sent=played.sent,
                offered=nodes.tables.offered(connections.background, played.sent),
                arrived=nodes.sink.settled_counts(),
            )
        ]
