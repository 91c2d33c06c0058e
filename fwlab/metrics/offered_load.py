# SPDX-License-Identifier: GPL-2.0-or-later
"""Trials at an offered load, on the nodes: what was sent, what the DUT took, and what reached the sink."""

import time
from dataclasses import dataclass

from fwlab.generator.protocol import traffic_guard
from fwlab.metrics.delivery import few_packets, play
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession, Nodes, through
from fwlab.metrics.step import Phase, Step
from fwlab.model.benchmarks import Benchmarks, TrialResult
from fwlab.model.metric import NeedsClock
from fwlab.model.results import Measured
from fwlab.model.trial import Delivery

#: Why an offered load says nothing where the DUT counts instructions.
REAL_CLOCK = NeedsClock(
    "host",
    "the generator sends by the host's clock, and a DUT whose clock counts instructions is as fast as the host lets it "
    "be, so an offered load has no meaning there (--testbed real)",
)
#: Trials at the maximum offered load, and seconds of each.
FLAT_OUT_TRIALS, FLAT_OUT_S = 3, 1.0
#: A class of which the ruleset lets a smaller share through than this, and not nothing, has no loss to speak of.
WHOLE = 0.99


@dataclass(frozen=True)
class AtLoad:
    """Makes trials with one traffic, and knows what the ruleset does with it at a light load."""

    nodes: Nodes
    traffic: str
    light: Delivery

    def measure(self, intended_duration: float, intended_load: float) -> TrialResult:
        """One trial: `intended_load` packets per second for `intended_duration` seconds. Raises CannotMeasure."""
        self._begin()
        passage = play(self.nodes, intended_load, max(1, round(intended_load * intended_duration)))
        return self._ended(intended_duration, intended_load, passage.sent, passage.duration_s, passage.taken)

    def flat_out(self, duration: float) -> TrialResult:
        """One trial as fast as the generator can. Raises CannotMeasure."""
        self._begin()
        before = through(self.nodes)[0]
        with traffic_guard(self.nodes.engine.start()) as playing:
            time.sleep(duration)
            played = playing.stop()
        self.nodes.dut.drain()
        taken = through(self.nodes)[0] - before
        return self._ended(duration, None, played.sent, played.duration_s, taken)

    def _begin(self) -> None:
        self.nodes.dut.drain()  # what an earlier trial left in the ring would be counted
        self.nodes.sink.load_counters(self.nodes.classes)

    def _ended(self, duration: float, load: float | None, sent: int, took_s: float, taken: int) -> TrialResult:
        arrived = sum(self.nodes.sink.settled_counts().values())
        offered = self.nodes.store.offered(self.traffic, sent)
        passable = sum(round(count * (self.light.delivered(name) or 0.0)) for name, count in offered.items())
        return TrialResult(
            intended_duration=duration,
            intended_load=load,
            sent=sent,
            duration_s=took_s,
            taken=taken,
            passable=passable,
            arrived=arrived,
        )


def at_load(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> AtLoad | None:
    """What makes the trials, once it is known what the ruleset lets through; None if that is not known."""
    light = found(so_far).light
    return None if light is None else AtLoad(session.nodes, spec.traffic_name, light)


def found(so_far: Measured) -> Benchmarks:
    """What was found at offered loads so far."""
    return so_far.benchmarks or Benchmarks()


def with_found(so_far: Measured, **more: object) -> Measured:
    """The result with these fields of its benchmarks replaced."""
    return so_far.plus(benchmarks=found(so_far).model_copy(update=more))


def _light_load(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    light, problems = few_packets(session.nodes, spec)
    for name, offered in light.offered.items():
        share = light.delivered(name)
        if offered and share is not None and 0 < share < WHOLE:
            problems.append(
                f"the ruleset lets {share:.1%} of {name} through at a light load: what is lost is not known"
            )
    return with_found(so_far, light=light).plus(problems=problems)


def _flat_out(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    measurer = at_load(session, spec, so_far)
    if measurer is None:
        return so_far
    trials = [measurer.flat_out(FLAT_OUT_S) for _ in range(FLAT_OUT_TRIALS)]
    problems = [] if any(trial.sent and trial.taken for trial in trials) else ["no packet reached the DUT"]
    return with_found(so_far, flat_out=trials).plus(problems=problems)


#: What the ruleset does with a few packets.
LIGHT_LOAD = Step(Phase.LIGHT_LOAD, _light_load, despite_problems=False)
#: What happens at the maximum offered load.
FLAT_OUT = Step(Phase.FLAT_OUT, _flat_out, despite_problems=False)
