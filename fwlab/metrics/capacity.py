# SPDX-License-Identifier: GPL-2.0-or-later
"""Capacity: trials flat out, with the DUT throttled until it is never idle (FRMOL of RFC 2285, per busy second)."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fwlab.dut.protocol import Collected
from fwlab.generator.pacing.paced_load import Sent
from fwlab.generator.protocol import PlaybackResult, traffic_guard
from fwlab.judge.clocks import CLOCKS
from fwlab.judge.statistics import scale
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession, Nodes, through
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.saturation import Attempt
from fwlab.metrics.step import Phase, Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, Overload, TestbedFacts
from fwlab.model.trial import Delivery, Trial

#: A trial in which the DUT was idle for more than this share is not valid: it was not saturated.
MOST_IDLE = 0.0005
#: A trial on the virtual testbed in which something else than packets took more than this share is perturbed.
MOST_OTHER = 0.005
#: Of the packets received on the first link, this share may arrive on the last: nodes send a few of their own.
MOST_BACK = 0.001
#: Trials on the virtual testbed are usually closer together than this share of their median.
USUAL_SPREAD = 0.02
#: How many idle trials, for each wanted one, end the attempt at a level; at the last level more are allowed. A few
#: idle trials cost less time than a slower DUT.
IDLE_AT_A_LEVEL, IDLE_AT_LAST_LEVEL = 2, 6


class Capacity(MeasurableMetric):
    """Packets per busy second that the DUT processed; on the virtual testbed on the reference CPU."""

    name = "capacity"
    unit = "pps"
    position = 10
    display = Display(
        "capacity",
        "kpps",
        1e-3,
        table="ratio",
        listed=False,
        cost_per_packet=True,
        caption="Capacity. Bars reach from the lowest to the highest trial; hollow marks are published ratios, "
        "multiplied by our baseline (dashed).",
    )
    tolerance = Tolerance(share=0.015, ratio=0.03)
    needs_clock = True
    invalidated_by = "any class"
    least_busy = 1 - MOST_IDLE
    usual_spread = USUAL_SPREAD
    interleaved = True
    below_ceiling = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [capacity(trial, testbed) for trial in measured.trials if trial.busy_s > 0]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD]

    def trials(self, measured: Measured) -> Sequence[Trial]:
        return measured.trials


METRIC = Capacity()


def capacity(trial: Trial, testbed: TestbedFacts) -> float:
    """Packets per busy second that the DUT processed (pps), on the reference CPU where virtual."""
    return trial.processed / trial.busy_s * scale(testbed)


def busy_rates(measured: Measured) -> list[float]:
    """Packets per busy second of the DUT's own clock, trial by trial, without scaling to the reference CPU."""
    return [trial.processed / trial.busy_s for trial in measured.trials if trial.busy_s > 0]


@dataclass(frozen=True, kw_only=True)
class Flood(Attempt[Trial]):
    """The trials of one level; packets that the generator sent for them, and how fast; where they arrived."""

    sent: int
    pps: float
    delivery: Delivery | None


def measure(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Trials flat out, the DUT throttled level by level until it is never idle."""
    nodes = session.nodes
    before = nodes.dut.received()
    search = session.saturation("flood").search(lambda level: _flood(nodes, spec, level), spec.trial.count)
    received, *_, back = (now - then for (now, _), (then, _) in zip(nodes.dut.received(), before, strict=True))
    # Each reply cost the DUT as much as a packet of a trial, and the trials do not count them.
    replied = back > MOST_BACK * received
    flood = search.attempt
    found = search.added_to(so_far, throttled=CLOCKS[nodes.clock].repeats)
    return found.hindered([f"the sink replied with {back} packets; it must stay silent"] if replied else []).plus(
        Overload(trials=flood.valid, generator_sent=flood.sent, generator_pps=flood.pps, flood=flood.delivery)
    )


def _flood(nodes: Nodes, spec: MeasurementSpec, level: int) -> Flood:
    if spec.fresh:
        # An earlier attempt has made the flows known to the DUT.
        nodes.dut.reset()
        nodes.dut.load(spec.files)
    counted = spec.asks_for("delivered") or (spec.accounted and nodes.recording is not None)
    record = nodes.recording if counted else None
    if counted and record is None:
        nodes.sink.load_counters(nodes.classes)
    before = through(nodes) if counted else (0, 0)
    with record(nodes.store, spec.traffic_name) if record else contextlib.nullcontext() as seen:
        trials, played = _flat_out(nodes, spec, level)
        delivery = _delivery(nodes, spec, played.sent, before, seen) if counted else None
    return Flood(*trials, sent=played.sent, pps=round(played.rate, 1), delivery=delivery)


def _flat_out(nodes: Nodes, spec: MeasurementSpec, level: int) -> tuple[Collected[Trial], PlaybackResult]:
    trial = spec.trial
    with nodes.throttle(level):
        last = level == nodes.levels - 1
        nodes.dut.arm(
            windows=trial.count,
            window_s=trial.seconds,
            packets=trial.packets,
            settle_s=trial.settle,
            idle_share=MOST_IDLE,
            other_share=MOST_OTHER if nodes.levels > 1 else 1.0,
            # Trials next to an idle one count as perturbed.
            max_unsaturated=(IDLE_AT_LAST_LEVEL if last else IDLE_AT_A_LEVEL) * trial.count,
        )
        with traffic_guard(nodes.engine.start()) as playback:
            trials = nodes.dut.collect(timeout=900)
    return trials, playback.stop()


def _delivery(
    nodes: Nodes, spec: MeasurementSpec, sent: int, before: tuple[int, int], seen: Callable[[], Sent] | None
) -> Delivery:
    """What became of this flood, by class: whether the ruleset does the same in it as at a light load."""
    nodes.dut.drain()
    received, sent_on = (now - then for now, then in zip(through(nodes), before, strict=True))
    left = seen() if seen is not None else None
    return Delivery(
        intended_load=None,
        sent=sent,
        offered=nodes.store.offered(spec.traffic_name, sent),
        arrived=nodes.sink.settled_counts(sent_on) if left is None else left.arrived(nodes.classes),
        returned={} if left is None else left.returned,
        foreign={} if left is None else left.foreign,
        taken=received,
        sent_on=sent_on if left is None else None,
    )


#: Trials flat out. Other metrics are measured with what they find.
FLOOD = Step(Phase.FLOOD, measure)
