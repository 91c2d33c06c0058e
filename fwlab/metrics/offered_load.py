# SPDX-License-Identifier: GPL-2.0-or-later
"""Trials at an offered load, on the nodes: what was sent, what the DUT took, and what came of it. And how a search for
throughput goes about it with these trials (its library is slow to import: rate/rate_search.py).

Where the DUT's clock counts instructions, the load is one in the DUT's own time (fwlab/generator/pacing). Loads and
durations are then those of the reference CPU, as capacities are.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fwlab.generator.pacing.paced_load import Load
from fwlab.generator.protocol import traffic_guard
from fwlab.generator.recording import MAX_BATCH
from fwlab.judge.clocks import CLOCKS
from fwlab.metrics.delivery import counted, first_plays
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes, Phase, Step, link_counters
from fwlab.metrics.plays import failed, play, play_paced
from fwlab.model.benchmarks import Benchmarks, TrialResult
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import AtLoads, Measured
from fwlab.model.trial import Delivery

#: Loss ratios of the goals: NDR (no packet lost: the throughput of RFC 1242) and PDR.
NDR, PDR = 0.0, 0.005
GOALS = (NDR, PDR)
#: Of the trials of a load that decide about it, this share may have more loss than the goal.
MAY_EXCEED = 0.5


@dataclass(frozen=True)
class SearchTerms:
    """How a search goes about it: seconds of a trial, seconds of all trials of a load that decide about it, how far the
    bounds of a goal lie apart at most, as a share, and seconds of a trial at the maximum offered load."""

    trial_s: float
    decided_s: float
    width: float
    flat_out_s: float


#: Settings for a class room: RFC 2544 wants trials of 60 s.
BY_HOST_CLOCK = SearchTerms(trial_s=1.0, decided_s=5.0, width=0.01, flat_out_s=1.0)
#: A load in the DUT's own time gives the same counts each time, so one trial decides. Seconds of the reference CPU.
BY_DUT_CLOCK = SearchTerms(trial_s=0.5, decided_s=0.5, width=0.002, flat_out_s=0.125)
#: Coarser searches before the last one.
COARSER = 2
#: Seconds for the whole search. A search without noise takes some 12 trials, one with much noise some 30.
BUDGET_S = 180.0

#: By loss ratio, lower and upper bound (pps); None where it was not found yet.
Bounds = dict[float, tuple[float | None, float | None]]


#: Trials at the maximum offered load.
FLAT_OUT_TRIALS = 3
#: A search begins at this share of what the generator sends flat out: closer to it, it cannot keep a rate.
OF_CEILING = 0.95
#: In the DUT's own time flat out is this load (pps of the reference CPU), above what any ruleset lets it process. A
#: search begins at this multiple of what it then processes.
BEYOND, OF_PROCESSED = 2_000_000.0, 1.1
#: A curve of frame loss begins at this multiple of it.
CURVE_FROM = 2.0
#: How long the load lasts before a trial in the DUT's own time, and after it: the DUT counts during the trial, and what
#: it spends on counting must not be part of the trial (s of the DUT's clock).
SETTLE_S, TAIL_S = 0.05, 0.05
#: A class of which the ruleset lets a smaller share through than this, and not nothing, has no loss to speak of.
WHOLE = 0.99


@dataclass(frozen=True)
class AtLoad(ABC):
    """Makes trials with one traffic, and knows what the ruleset does with it at a light load.

    terms  how a search goes about it with these trials
    """

    nodes: Nodes
    traffic: str
    light: Delivery
    terms: ClassVar[SearchTerms]

    @abstractmethod
    def measure(self, intended_duration: float, intended_load: float) -> TrialResult:
        """One trial: `intended_load` packets per second for `intended_duration` seconds. Raises CannotMeasure."""

    @abstractmethod
    def flat_out(self) -> TrialResult:
        """One trial at the maximum offered load. Raises CannotMeasure."""

    @abstractmethod
    def highest(self, flat_out: Sequence[TrialResult]) -> float:
        """The highest load of a search, after these trials at the maximum offered load."""

    @abstractmethod
    def ceiling(self, flat_out: Sequence[TrialResult]) -> float:
        """The load that a curve of frame loss comes down from."""


class AtHostLoad(AtLoad):
    """Trials by the host's clock."""

    terms = BY_HOST_CLOCK

    def highest(self, flat_out: Sequence[TrialResult]) -> float:
        return OF_CEILING * self.ceiling(flat_out)

    def ceiling(self, flat_out: Sequence[TrialResult]) -> float:
        return max(trial.offered_load for trial in flat_out)

    def measure(self, intended_duration: float, intended_load: float) -> TrialResult:
        self._begin()
        passage = play(self.nodes, self.traffic, intended_load, max(1, round(intended_load * intended_duration)))
        return self._ended(intended_duration, intended_load, passage.sent, passage.duration_s, passage.taken)

    def flat_out(self) -> TrialResult:
        self._begin()
        before = link_counters(self.nodes)[0]
        with traffic_guard(self.nodes.engine.start()) as playing:
            time.sleep(self.terms.flat_out_s)
            played = playing.stop()
        self.nodes.dut.drain()
        taken = link_counters(self.nodes)[0] - before
        return self._ended(self.terms.flat_out_s, None, played.sent, played.duration_s, taken)

    def _begin(self) -> None:
        self.nodes.dut.drain()  # what an earlier trial left in the ring would be counted
        self.nodes.sink.load_counters(self.nodes.classes)

    def _ended(self, duration: float, load: float | None, sent: int, took_s: float, taken: int) -> TrialResult:
        arrived = sum(self.nodes.sink.settled_counts().values())
        passable = passed(self.light, self.nodes.store.offered(self.traffic, sent))
        return TrialResult(
            intended_duration=duration,
            intended_load=load,
            sent=sent,
            duration_s=took_s,
            taken=taken,
            passable=passable,
            arrived=arrived,
        )


class AtPacedLoad(AtLoad):
    """Trials in the DUT's own time. Loads and durations are those of the reference CPU."""

    terms = BY_DUT_CLOCK

    def highest(self, flat_out: Sequence[TrialResult]) -> float:
        return OF_PROCESSED * max(trial.taken / trial.duration_s for trial in flat_out)

    def ceiling(self, flat_out: Sequence[TrialResult]) -> float:
        return CURVE_FROM * max(trial.taken / trial.duration_s for trial in flat_out)

    def measure(self, intended_duration: float, intended_load: float) -> TrialResult:
        scale = self.nodes.ns_per_instruction
        trial_s = intended_duration * scale
        load = Load(
            pps=intended_load / scale, settle_s=SETTLE_S, trials=1, trial_s=trial_s, tail_s=TAIL_S, rotated=True
        )
        play = play_paced(self.nodes, self.traffic, load, watch_s=trial_s)
        if play.problems:
            raise failed(play)
        if play.watched is None:
            raise CannotMeasure("the DUT did not see the load", "fwlab doctor")
        [trial], seen = play.trials, play.watched
        sent, wanted = sum(trial.offered.values()), round(intended_load * intended_duration)
        sent = wanted if abs(sent - wanted) <= 1 else sent  # a tick holds whole frames
        # The ring, and QEMU's queue before it, hold all that a load just above the capacity leaves undone in a trial.
        # That is what was lost: in a longer trial it would have been.
        came = load.pps * seen.duration_s
        kept_up = came - seen.processed <= load.per_tick + min(MAX_BATCH, self.terms.width * came)
        processed = min(sent - 1, round(seen.processed / seen.duration_s * trial.duration_s))
        # Something may still be on its way: in the ring, if the DUT has time left for it, else of the last tick.
        on_its_way = self.nodes.ring if kept_up else math.ceil(load.per_tick)
        left = sum(trial.forwarded.values()) + sum(trial.returned.values()) + on_its_way
        passable = passed(self.light, trial.offered)
        return TrialResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            sent=sent,
            duration_s=trial.duration_s / scale,
            taken=sent if kept_up else max(0, processed),
            passable=passable,
            arrived=min(passable, left),
            busy_share=seen.busy_share,
        )

    def flat_out(self) -> TrialResult:
        return self.measure(self.terms.flat_out_s, BEYOND).model_copy(update={"intended_load": None})


def passed(light: Delivery, offered: Mapping[str, int]) -> int:
    """How many of these the ruleset lets through, by what it does at a light load."""
    return sum(round(count * (light.delivered(name) or 0.0)) for name, count in offered.items())


def at_load(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> AtLoad | None:
    """What makes the trials, once it is known what the ruleset lets through; None if that is not known."""
    light = found(so_far).light
    if light is None:
        return None
    kind = AtPacedLoad if CLOCKS[session.nodes.clock].paced else AtHostLoad
    return kind(session.nodes, spec.traffic_name, light)


def found(so_far: Measured) -> Benchmarks:
    """What was found at offered loads so far."""
    return so_far.benchmarks or Benchmarks()


def with_found(so_far: Measured, **more: object) -> Measured:
    """The result with these fields of its benchmarks replaced."""
    return so_far.plus(AtLoads(benchmarks=found(so_far).model_copy(update=more)))


def _light_load(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    light, problems = counted(session.nodes, spec, first_plays(session.nodes, spec))
    for name, offered in light.offered.items():
        share = light.delivered(name)
        if offered and share is not None and 0 < share < WHOLE:
            problems.append(
                f"the ruleset lets {share:.1%} of {name} through at a light load: what is lost is not known"
            )
    return with_found(so_far, light=light).troubled(problems)


def _flat_out(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    measurer = at_load(session, spec, so_far)
    if measurer is None:
        return so_far
    trials = [measurer.flat_out() for _ in range(FLAT_OUT_TRIALS)]
    problems = [] if any(trial.sent and trial.taken for trial in trials) else ["no packet reached the DUT"]
    return with_found(so_far, flat_out=trials).troubled(problems)


#: What the ruleset does with a few packets.
LIGHT_LOAD = Step(Phase.LIGHT_LOAD, _light_load, despite_problems=False)
#: What happens at the maximum offered load.
FLAT_OUT = Step(Phase.FLAT_OUT, _flat_out, despite_problems=False)
