# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency at 10, 50 and 90 % of the throughput with 0.5 % loss (PDR), and nearly without a load.

Where the load is one in the DUT's own time, it is the time from the arrival of a frame at the DUT's first NIC to its
departure from the last (RFC 1242, 3.8), of every frame. The NIC that QEMU emulates sends up to 150 us of the DUT's
clock after the DUT has announced it, and the frames of a tick arrive together: both are part of these times.

On the host's clock RFC 2544 (section 26.2) tags one frame of the stream; neither engine can. So the times are round
trips of probes during it.
"""

from collections.abc import Sequence

from fwlab.generator.pacing.paced_load import Load
from fwlab.generator.protocol import traffic_guard
from fwlab.metrics.measurement import (
    MeasurableMetric,
    MeasurementSpec,
    MeasuringSession,
    Nodes,
    Phase,
    Step,
    link_counters,
)
from fwlab.metrics.offered_load import FLAT_OUT, LIGHT_LOAD, PDR, SETTLE_S, found, with_found
from fwlab.metrics.plays import RATE_PACKETS, failed, once_taken, play_paced
from fwlab.metrics.throughput import SEARCH, doubt_about
from fwlab.model.benchmarks import LatencyTrial
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts

#: The loads, as shares of PDR; 0: nothing but the probes.
SHARES = (0.0, 0.1, 0.5, 0.9)
#: The load whose median is the metric's value.
MIDDLE = 0.5
#: Probes at each load, and seconds between two: few enough compared with the load, and enough for a 99th percentile.
PROBES, INTERVAL_S = 400, 0.01


#: In the DUT's own time: the load in place of none (pps of the reference CPU), and seconds of the DUT's clock.
MIN_PPS, PACED_S = 2000.0, 1.0


class Latency(MeasurableMetric):
    """Its value is the median time at half of PDR (s); the result keeps the times at every load."""

    name = "latency"
    unit = "s"
    position = 16
    display = Display("median latency at 50 % of PDR", "ms", 1e3)
    tolerance = Tolerance(share=0.2)
    portable = False
    needs_clock = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        medians = [trial.percentile(50) for trial in found(measured).latency if trial.of_pdr == MIDDLE]
        return [median for median in medians if median is not None]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [LIGHT_LOAD, FLAT_OUT, SEARCH, ROUND_TRIPS]

    def doubts(self, measured: Measured) -> list[str]:
        reasons = [doubt_about(one, one.goal(PDR)) for one in found(measured).searches]
        return [f"the loads are shares of a doubtful throughput: {reason}" for reason in reasons if reason]


METRIC = Latency()


def _round_trips(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    pdr = _pdr(so_far)
    if pdr is None:
        return so_far.troubled(["latency: the search found no throughput, of which the loads are shares"])
    if session.nodes.pacing is not None:
        paced = [_paced_trial(session.nodes, spec, share, share * pdr or MIN_PPS) for share in SHARES]
        lost = [] if paced[0].round_trips_s else ["latency: no frame left the DUT: the ruleset drops all of them"]
        return so_far.troubled(lost) if lost else with_found(so_far, latency=paced)
    session.nodes.sink.load_counters(session.nodes.classes, echo=True)
    trials: list[LatencyTrial] = []
    for share in SHARES:
        trials.append(_trial(session.nodes, share, share * pdr))
        if not trials[0].round_trips_s:
            return so_far.troubled(
                ["latency: no probe was answered: the ruleset drops ICMP echo, or the engine holds the NIC"]
            )
    return with_found(so_far, latency=trials)


def _paced_trial(nodes: Nodes, spec: MeasurementSpec, share: float, load: float) -> LatencyTrial:
    """Every frame's way through the DUT at this load (pps of the reference CPU), in seconds of the reference CPU."""
    scale = nodes.ns_per_instruction
    asked = Load(pps=load / scale, settle_s=SETTLE_S, trials=1, trial_s=PACED_S, timed=True)
    play = play_paced(nodes, spec.traffic_name, asked)
    if play.problems:
        raise failed(play)
    times = [time / scale for time in play.transit_s]
    return LatencyTrial(of_pdr=share, offered_load=load, probes=max(1, len(times)), round_trips_s=times)


def _pdr(so_far: Measured) -> float | None:
    """The highest load of which at most 0.5 % was lost (pps)."""
    goals = [one.goal(PDR) for one in found(so_far).searches]
    return next((goal.lower for goal in reversed(goals) if goal is not None and goal.lower), None)


def _trial(nodes: Nodes, share: float, load: float) -> LatencyTrial:
    if not load:
        echoes, rate = nodes.echo(PROBES, INTERVAL_S), 0.0
    else:
        before = link_counters(nodes)[0]
        with traffic_guard(nodes.engine.start(load=load)) as playing:
            once_taken(nodes, RATE_PACKETS, before)  # the engine may take seconds to start
            echoes = nodes.echo(PROBES, INTERVAL_S)
            rate = playing.stop().rate
        nodes.dut.drain()
    return LatencyTrial(of_pdr=share, offered_load=rate, probes=echoes.sent, round_trips_s=echoes.round_trips_s)


#: Times without a load and at each share of PDR.
ROUND_TRIPS = Step(Phase.LATENCY, _round_trips, despite_problems=False)
