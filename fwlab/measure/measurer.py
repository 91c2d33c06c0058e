# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure one ruleset: load it, then take the steps of every metric that is asked for.

On a clock that the host shares, a case and its baseline are interleaved, A B A B, so that what drifts on the host
drifts for both alike: its frequency, its temperature and its other work change in minutes.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from fwlab.generator.traffic_store import TrafficStore
from fwlab.judge.statistics import min_values
from fwlab.measure.trickle import trickle
from fwlab.metrics import load_time
from fwlab.metrics.call_stacks import PROFILE
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes, Phase, Step
from fwlab.metrics.registry import METRICS
from fwlab.model.declared_traffic import TrafficClass
from fwlab.model.errors import CannotMeasure, DeadlineExceeded, Refused
from fwlab.model.events import ItemPhase
from fwlab.model.metric import TrafficKind, refused_by_clock
from fwlab.model.results import Clock, Loading, Measured, Trouble
from fwlab.model.ruleset import ruleset_hash

#: How long an interrupted session may take to restore the DUT's start state (s).
INTERRUPTED_S = 60.0


class Measurer:
    """The nodes of one session, ready to measure one specification after the other."""

    def __init__(self, nodes: Nodes) -> None:
        self._session = MeasuringSession(nodes)
        self._on_dut: str | None = None

    def measure(self, spec: MeasurementSpec, limit_s: float | None = None) -> Measured:
        """All that is asked for, within `limit_s` seconds. Raises DeadlineExceeded; CannotMeasure if a node dies."""
        try:
            with self._session.nodes.dut.within(limit_s) if limit_s else contextlib.nullcontext():
                return self._measure(spec)
        except CannotMeasure:
            self._on_dut = None
            raise

    def forget(self) -> None:
        """The DUT was restored: it holds no ruleset."""
        self._on_dut = None

    def put_back_ends(self) -> None:
        """Undo what frames that a ruleset sent may have changed at generator and sink."""
        with contextlib.suppress(CannotMeasure):  # the next measurement fails for the same reason, and reports it
            self._session.nodes.sink.put_back()

    @contextlib.contextmanager
    def playing(self, store: TrafficStore, classes: dict[str, TrafficClass]) -> Iterator[None]:
        """Play this traffic, and count by these classes, while the context is open."""
        before = self._session.nodes
        self._session.nodes = replace(before, store=store, classes=classes)
        try:
            yield
        finally:
            self._session.nodes = before

    @contextlib.contextmanager
    def held(self, spec: MeasurementSpec, limit_s: float) -> Iterator[str]:
        """The ruleset on the DUT, with a trickle of its traffic, while the context is open; yields that in words.

        The start state is restored when the context ends, or else by the end of the DUT's connection. Raises Refused,
        DeadlineExceeded if the ruleset does not load within `limit_s` seconds, and CannotMeasure.
        """
        nodes = self._session.nodes
        self._on_dut = None
        with nodes.dut.within(limit_s):
            _must_not(self._reset(spec))
            if spec.files:
                nodes.dut.load(spec.files, each=spec.each)
                nodes.dut.must_admit_logins()
        played = self._played(spec)
        if played == "packets":
            self._select(spec)
        try:
            with trickle(nodes, spec.traffic_name) if played != "none" else contextlib.nullcontext("nothing") as words:
                yield words
        except KeyboardInterrupt:
            with contextlib.suppress(CannotMeasure), nodes.dut.within(INTERRUPTED_S):
                self._reset()
            raise
        _must_not(self._reset())

    def _measure(self, spec: MeasurementSpec) -> Measured:
        nodes, began = self._session.nodes, time.monotonic()
        measured = _unmeasured(spec)
        try:
            stays = all(METRICS[name].keeps_ruleset for name in spec.metrics)
            if not (stays and self._on_dut == measured.ruleset_hash):
                self._on_dut = None
                nodes.emit(ItemPhase(spec.id, "loading"))
                measured = measured.troubled(self._reset(None if spec.apart else spec))
                if not spec.apart:
                    measured = measured.plus(Loading(loads=load_time.load(nodes, spec)))
                    if spec.accounted:
                        nodes.dut.must_admit_logins()
                    self._on_dut = measured.ruleset_hash
            played = self._played(spec)
            for step in _steps(spec, played, nodes.clock):
                if spec.decided(measured):
                    break
                if step.despite_problems or not measured.problems:
                    nodes.emit(ItemPhase(spec.id, step.phase.name.lower().replace("_", " ")))
                    with self._play(spec, played, step.phase):
                        measured = step.run(self._session, spec, measured)
            if any(METRICS[name].takes_ruleset for name in spec.metrics):
                self._on_dut = None
        except Refused as refusal:
            measured = measured.plus(Trouble(refused=refusal.message))
        measured = measured.model_copy(update={"wall_s": round(time.monotonic() - began, 1)})
        self._session.keep(measured)
        return measured

    def _reset(self, spec: MeasurementSpec | None = None) -> list[str]:
        """Restore the DUT's start state, for the next ruleset if one follows; returns the problem if that fails.

        A load time is measured on a DUT that has nothing of the ruleset yet.
        """
        nodes = self._session.nodes
        times_loading = spec is not None and any(METRICS[name].times_loading for name in spec.metrics)
        left = nodes.dut.reset(next_ruleset=spec.files if spec and not times_loading else None)
        if left and nodes.restore():
            left = nodes.dut.reset()
        return [f"the DUT is not in its start state (vagrant reload LAB): {'; '.join(left)}"] if left else []

    def _played(self, spec: MeasurementSpec) -> TrafficKind:
        """What is played: packets of a profile, connections, or nothing."""
        if spec.traffic is None:
            return "none"
        return "packets" if self._session.nodes.store.plays_packets(spec.traffic) else "connections"

    @contextlib.contextmanager
    def _play(self, spec: MeasurementSpec, played: TrafficKind, phase: Phase) -> Iterator[None]:
        """The traffic as it is drawn for this phase, while the context is open.

        The flood's is the play 0, which `fwlab traffic show` shows.
        """
        if played != "packets":
            yield
            return
        nodes = self._session.nodes
        store = nodes.store.of_play(spec.traffic_name, phase - Phase.FLOOD, phase.max_packets)
        with self.playing(store, nodes.classes):
            self._select(spec)
            yield

    def _select(self, spec: MeasurementSpec) -> None:
        """Select the traffic, and let the sink take all of it: a reply would go through the DUT at the DUT's cost."""
        nodes = self._session.nodes
        nodes.engine.use(nodes.store, spec.traffic_name)
        nodes.sink.set_flows(nodes.store.flows(spec.traffic_name))
        nodes.sink.absorb_all(nodes.classes)


def _must_not(problems: list[str]) -> None:
    for problem in problems:
        raise CannotMeasure(problem, "vagrant reload LAB")


def _steps(spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> list[Step]:
    """The steps of all metrics that this traffic and clock can measure, each once, in the order of their phases."""
    metrics = [metric for name in spec.metrics if refused_by_clock(metric := METRICS[name], clock) is None]
    steps = [step for metric in metrics if played in metric.traffic for step in metric.steps(spec, played, clock)]
    if spec.sampled and played == "packets":
        steps.append(PROFILE)
    return sorted(dict.fromkeys(steps), key=lambda step: step.phase)


def _unmeasured(spec: MeasurementSpec) -> Measured:
    return Measured(
        id=spec.id,
        title=spec.title,
        ruleset=spec.ruleset,
        ruleset_hash=ruleset_hash(spec.files),
        parameters=spec.parameters,
        traffic=spec.traffic,
        metric=spec.metrics[0],
        also=spec.metrics[1:],
        victim_class=spec.victim_class,
        total_load=spec.total_load,
        remarks=spec.remarks,
    )


Measure = Callable[[MeasurementSpec, float | None], Measured]


def interleave_trials(measure: Measure, spec: MeasurementSpec, limit_s: float | None = None) -> Measured:
    """Measure by at least as many trials as a confidence interval needs, each in a round of its own.

    Without an interleaved case, the trials follow each other. A round has one trial of the case and one of the other;
    everything else that the case asks for is measured in the first. Ends early after a problem. Raises DeadlineExceeded
    after `limit_s` seconds, and what `measure` raises.
    """
    count = max(spec.trial.count, min_values())
    if spec.interleaved is None:
        return measure(replace(spec, trial=spec.trial.changed(count)), limit_s)
    ends = None if limit_s is None else time.monotonic() + limit_s
    first = replace(spec, trial=spec.trial.changed(1), interleaved=None)
    again = replace(first, metrics=[name for name in spec.metrics if METRICS[name].interleaved])
    base = spec.interleaved
    other = replace(base, id=f"{base.id} interleaved with {spec.id}", trial=base.trial.changed(1))
    found = measure(first, _left(ends, spec))
    interleaved = measure(other, _left(ends, spec)).model_copy(update={"id": base.id})
    for _ in range(count - 1):
        if any(one.problems or one.unsaturated or one.refused or one.lost for one in (found, interleaved)):
            break
        found = found.joined(measure(again, _left(ends, spec)))
        interleaved = interleaved.joined(measure(other, _left(ends, spec)))
    return found.model_copy(update={"interleaved": interleaved})


def _left(ends: float | None, spec: MeasurementSpec) -> float | None:
    """Seconds that are left. Raises DeadlineExceeded if none are."""
    if ends is None:
        return None
    left = ends - time.monotonic()
    if left <= 0:
        raise DeadlineExceeded(f"{spec.id}: the measurement timed out")
    return left
