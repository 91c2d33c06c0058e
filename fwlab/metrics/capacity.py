# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics of the trials flat out, with the DUT throttled until it is never idle.

Capacity, packets per busy second; FRMOL, packets per second; instructions per packet; the share that is forwarded; and
what the generator sent.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fwlab.dut.protocol import Collected
from fwlab.generator.pacing.paced_load import Sent
from fwlab.generator.protocol import PlaybackResult, traffic_guard
from fwlab.judge.clocks import CLOCKS
from fwlab.judge.statistics import scale
from fwlab.metrics.measurement import (
    MeasurableMetric,
    MeasurementSpec,
    MeasuringSession,
    Nodes,
    Phase,
    Step,
    link_counters,
)
from fwlab.metrics.saturation import Attempt
from fwlab.model.events import TrialsMade
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, Overload, TestbedFacts
from fwlab.model.trial import Delivery, Trial

#: A trial in which the DUT was idle for more than this share is not valid: it was not saturated.
MAX_IDLE = 0.0005
#: A trial on the virtual testbed in which non-packet work took more than this share is perturbed.
MAX_OTHER = 0.005
#: Of the packets received on the first link, this share may arrive on the last: nodes send a few of their own.
MAX_REPLIED = 0.001
#: Trials on the virtual testbed are usually closer together than this share of their median.
USUAL_SPREAD = 0.02
#: How many idle trials, for each wanted one, end the attempt at a level; at the last level more are allowed. A few
#: idle trials cost less time than a slower DUT.
IDLE_AT_A_LEVEL, IDLE_AT_LAST_LEVEL = 2, 6


class OfFlood(MeasurableMetric):
    """A metric of the trials flat out."""

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD]

    def trials(self, measured: Measured) -> Sequence[Trial]:
        return measured.trials


class Capacity(OfFlood):
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
    min_busy = 1 - MAX_IDLE
    usual_spread = USUAL_SPREAD
    interleaved = True
    below_ceiling = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [rate * scale(testbed) for rate in busy_rates(measured)]


def busy_rates(measured: Measured) -> list[float]:
    """Packets per busy second of the DUT's own clock, trial by trial, without scaling to the reference CPU."""
    return _rates(measured.trials)


def _rates(trials: Sequence[Trial]) -> list[float]:
    return [trial.processed / trial.busy_s for trial in trials if trial.busy_s > 0]


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
    replied = back > MAX_REPLIED * received
    flood = search.attempt
    found = search.added_to(so_far, throttled=CLOCKS[nodes.clock].repeats)
    return found.hindered([f"the sink replied with {back} packets; it must stay silent"] if replied else []).plus(
        Overload(trials=flood.valid, generator_sent=flood.sent, generator_pps=flood.pps, flood=flood.delivery)
    )


def _flood(nodes: Nodes, spec: MeasurementSpec, level: int) -> Flood:
    if spec.reload_each_attempt:
        # An earlier attempt has made the flows known to the DUT.
        nodes.dut.reset()
        nodes.dut.load(spec.files)
    counted = spec.asks_for("delivered") or (spec.accounted and nodes.recording is not None)
    record = nodes.recording if counted else None
    if counted and record is None:
        nodes.sink.load_counters(nodes.classes)
    before = link_counters(nodes) if counted else (0, 0)
    with record(nodes.store, spec.traffic_name) if record else contextlib.nullcontext() as seen:
        trials, played = _flat_out(nodes, spec, level)
        delivery = _delivery(nodes, spec, played.sent, before, seen) if counted else None
    if rates := _rates(trials.valid):
        nodes.emit(TrialsMade(spec.id, CAPACITY.name, tuple(rate * nodes.ns_per_instruction for rate in rates)))
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
            idle_share=MAX_IDLE,
            other_share=MAX_OTHER if nodes.levels > 1 else 1.0,
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
    received, sent_on = (now - then for now, then in zip(link_counters(nodes), before, strict=True))
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
        dispersion=nodes.store.dispersion(spec.traffic_name),
    )


#: Trials flat out. Other metrics are measured with what they find.
FLOOD = Step(Phase.FLOOD, measure)


class ForwardingRate(OfFlood):
    """FRMOL: packets per second that the DUT sends on while the generator sends flat out (RFC 2285, 3.6.2).

    By the clock: idle time and filtered packets do not count as forwarding.
    """

    name = "frmol"
    unit = "pps"
    position = 14
    display = Display("forwarding rate at maximum offered load (FRMOL)", "kpps", 1e-3)
    tolerance = Tolerance(share=0.05, ratio=0.1)
    needs_clock = True
    interleaved = True
    below_ceiling = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [
            trial.forwarded / trial.duration_s * scale(testbed) for trial in measured.trials if trial.duration_s > 0
        ]


class Instructions(OfFlood):
    """Instructions per packet: counted by the clock on the virtual testbed, by the CPU on the real one.

    A CPU that waits for packets halts, and retires nothing meanwhile.

    The two testbeds' figures are close but not equal: a CPU's own counter counts an interrupt as one more instruction
    and a repeated string instruction as one, and a kernel patches its own code to suit the CPU.
    """

    name = "instructions"
    unit = "count"
    position = 11
    display = Display("instructions per packet", whole=True)
    tolerance = Tolerance(share=0.015, ratio=0.03)
    needs_clock = True
    min_busy = 1 - MAX_IDLE

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        counted = [trial for trial in measured.trials if trial.processed]
        if testbed.ns_per_instruction:
            return [trial.busy_s * 1e9 / scale(testbed) / trial.processed for trial in counted]
        return [trial.instructions / trial.processed for trial in counted if trial.instructions is not None]


class Forwarded(OfFlood):
    """How much of what the DUT takes from its receive ring it sends on.

    One share of all trials together: a packet may be taken in one and sent in the next. Where all packets should pass,
    this needs no sink, and a sink that is too slow for large frames would lose some of them.
    """

    name = "forwarded"
    unit = "ratio"
    position = 45
    display = Display("forwarded", "%", 100.0)
    tolerance = Tolerance(absolute=0.01)

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        processed, forwarded = self._sums(measured)
        return [forwarded / processed] if processed else []

    def counts(self, measured: Measured, traffic_class: str = "") -> tuple[int, int] | None:
        processed, forwarded = self._sums(measured)
        return (min(processed, forwarded), processed) if processed else None

    def _sums(self, measured: Measured) -> tuple[int, int]:
        return (
            sum(trial.processed for trial in measured.trials),
            sum(trial.forwarded for trial in measured.trials),
        )


class GeneratorRate(OfFlood):
    """Packets per second that left the generator flat out, by the host's clock.

    It says whether the generator was the limit, differs from host to host, and is never judged.
    """

    name = "generator"
    unit = "pps"
    position = 90
    display = Display("generator", "kpps", 1e-3)
    portable = False

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [] if measured.generator_pps is None else [measured.generator_pps]


CAPACITY, GENERATOR_RATE = Capacity(), GeneratorRate()
METRIC = (CAPACITY, ForwardingRate(), Instructions(), Forwarded(), GENERATOR_RATE)
