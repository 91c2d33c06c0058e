# SPDX-License-Identifier: GPL-2.0-or-later
"""One session with one lab: start its machines, measure cases and exercises, destroy what was started."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fwlab.generator import selection as engines
from fwlab.judge.clocks import clock_of
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import all_doubts, needs_more_trials, should_remeasure, suspected
from fwlab.measure.context import RunContext
from fwlab.measure.core_models import modelled
from fwlab.measure.measurer import Measurer, interleave_trials
from fwlab.measure.nodes import open_nodes
from fwlab.measure.provenance import new_run, run_of_other_lab
from fwlab.measure.recovery import Recovery
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import CannotMeasure, CannotStart, DeadlineExceeded, DutLost, Hindered
from fwlab.model.events import (
    EventSink,
    ItemFinished,
    ItemLeftOut,
    ItemStarted,
    LogLine,
    MachinesBusy,
    PlanMade,
    StepStarted,
    Warned,
)
from fwlab.model.metric import refused_by_clock
from fwlab.model.results import Measured, Run
from fwlab.testbed.machines import Machines
from fwlab.testbed.session_lock import machines_held

#: Time limit of one submission (s). The slowest exercise took 89 s on a busy host.
EXERCISE_S = 240.0
#: Where a ruleset took longer, the same without it must take no longer than this (s), or else the host is slow. A long
#: list takes a few times as long as nothing.
WITHOUT_S = EXERCISE_S / 4
#: Trials of a second measurement, if those of the first were too far apart: the interval of a median needs many.
TRIALS_IF_APART = 15
#: Maximum number of later measurements that try nodes again which did not answer: the host may be less busy.
REVIVALS = 3


class Session:
    """A lab's machines, ready to measure. Made by `open_session`.

    lost_link  checks the host's links: returns an error that names a lost one, or None
    """

    def __init__(
        self,
        context: RunContext,
        measurer: Measurer,
        recovery: Recovery,
        run: Run,
        ssh_config: Path,
        emit: EventSink,
        lost_link: Callable[[], CannotMeasure | None] = lambda: None,
    ) -> None:
        self.context, self.run, self.ssh_config, self._lost_link = context, run, ssh_config, lost_link
        self._measurer, self._recovery, self._emit = measurer, recovery, emit
        #: The lab whose traffic is played; None if it is the lab that the nodes were opened for.
        self._playing_of: RunContext | None = None
        self._dead: str | None = None
        self._revivals = 0
        #: Whether a ruleset that may break the DUT was measured since its state was saved or restored.
        self._untrusted = False

    def for_lab(self, context: RunContext) -> "Session":
        """This session on the same open machines for another lab, with a run of its own. Use one at a time."""
        session = copy.copy(self)
        session.context, session.run, session._playing_of = context, run_of_other_lab(self.run, context), context
        return session

    @property
    def dead(self) -> bool:
        """Whether a node did not answer, so that nothing can be measured unless it does again."""
        return self._dead is not None

    def require(self, metrics: Sequence[str], specs: Sequence[MeasurementSpec] = ()) -> None:
        """Raise CannotMeasure, with the reason, for a metric that this testbed's clock cannot measure.

        Likewise for a specification that needs more CPUs than the DUT has.
        """
        lab = self.context.machines_lab.id
        for name in metrics:
            why = refused_by_clock(METRICS[name], self.run.testbed.clock)
            if why is not None:
                raise CannotMeasure(why, f"vagrant destroy -f {lab}, then the same command with --testbed real")
        for spec in specs:
            if lacks := self._lacks(spec):
                why, hint = lacks
                raise CannotMeasure(f"{spec.id}: {why}", hint)

    def _lacks(self, spec: MeasurementSpec) -> tuple[str, str] | None:
        """What the DUT lacks for this measurement, and what to do about it; None if it lacks nothing."""
        dut = self.run.dut
        if dut.cpus < spec.cpus:
            again = f"export FWLAB_DUT_CPUS={spec.cpus}, then the same command with --testbed real"
            hint = f"vagrant destroy -f {self.context.machines_lab.id}, {again}"
            return f"it needs a DUT with {spec.cpus} CPUs, this one has {dut.cpus}", hint
        if spec.nic is not None and spec.nic not in dut.nics:
            has = ", ".join(dut.nics) or "none"
            why = f"it needs the NIC {spec.nic}; apart from the usual NIC, this DUT and its kernel have {has}"
            return why, "see `NICs besides the usual one` in guides/links.md"
        return None

    def measurable(self, specs: list[MeasurementSpec]) -> list[MeasurementSpec]:
        """Those whose main metric this testbed's clock can measure, and for which the DUT has CPUs enough.

        Emits an event with the reason for each omitted case.
        """
        found = []
        for spec in specs:
            why = refused_by_clock(METRICS[spec.metrics[0]], self.run.testbed.clock)
            if why is None and (lacks := self._lacks(spec)):
                why, _ = lacks
            if why is None:
                found.append(spec)
            else:
                self._emit(ItemLeftOut(spec.id, why))
        return found

    def measure_cases(self, specs: list[MeasurementSpec]) -> None:
        """Measure cases and add them to the run. If a machine dies for good, all later ones are inconclusive, too."""
        with self._playing(None):
            self.run.cases.extend(self._measure(specs))

    def measure_exercises(
        self, specs: list[MeasurementSpec], own: RunContext | None = None, *, trusted: bool = False
    ) -> None:
        """Like measure_cases, for rulesets that may break the DUT: its state is saved before the first one.

        own      a student's lab, whose traffic is played and whose classes are counted instead of the session's
        trusted  the rulesets are the lab's own: after them, a reset suffices
        """
        with contextlib.suppress(CannotMeasure):  # the first measurement fails for the same reason, and reports it
            self._recovery.prepare()
        self._untrusted |= not trusted
        with self._playing(own):
            self.run.exercises.extend(self._measure(specs, limit_s=EXERCISE_S))

    def _playing(self, own: RunContext | None) -> contextlib.AbstractContextManager[None]:
        """The traffic and the classes of another lab, or of a student's own, while the context is open."""
        played = own or self._playing_of
        return self._measurer.playing(played.store, played.lab.classes) if played else contextlib.nullcontext()

    def start_over(self) -> None:
        """Go on with the nodes as they were before the first ruleset that may break them, if one was measured since.

        Nothing that such a ruleset left behind can reach the next one. Without a saved state, the reset that follows
        each ruleset has to do. Nodes that do not answer are revived as often for what follows as at first.
        """
        self._revivals = 0
        if self._untrusted and self._dead is None:
            if self._recovery.restore():
                self._measurer.forget()
            self._measurer.put_back_ends()
        self._untrusted = False

    @contextlib.contextmanager
    def hold(self, spec: MeasurementSpec) -> Iterator[str]:
        """Keep a ruleset on the DUT, with a trickle of its traffic, while the context is open; yields that in words.

        Somebody may do what they like on the DUT meanwhile, so its state is saved first. Raises Refused, CannotMeasure.
        """
        self.require((), [spec])
        with contextlib.suppress(CannotMeasure):
            self._recovery.prepare()
        try:
            with self._playing(None), self._measurer.held(spec, EXERCISE_S) as words:
                yield words
        except CannotMeasure:
            self._recovery.restore()
            raise

    def _measure(self, specs: list[MeasurementSpec], limit_s: float | None = None) -> Iterator[Measured]:
        self._emit(PlanMade(len(specs)))
        for spec in specs:
            self._emit(ItemStarted(spec.id))
            measured = self._measure_one(spec, limit_s)
            ok = not (measured.problems or measured.unsaturated or measured.refused or measured.lost)
            self._emit(ItemFinished(spec.id, summary(measured, self.run), ok, _figures(measured, self.run)))
            yield measured

    def _measure_one(self, spec: MeasurementSpec, limit_s: float | None) -> Measured:
        """Measure, and once more if the first figures are in doubt: a busy host may be quiet the second time.

        The second measurement counts, whatever it says; the reason for it is recorded. It takes more trials if those of
        the first were too far apart. Between the two of a student's ruleset, the same is measured without it if the
        ruleset may be the cause: in between, so that a host that grows busy or quiet decides nothing.
        """
        measured, error = self._attempt(spec, limit_s)
        reasons = [] if spec.decided(measured) else should_remeasure(measured, self.run, METRICS)
        if reasons and not isinstance(error, CannotStart) and self._dead is None:
            fine_without = False
            if limit_s is not None and suspected(measured, self.run, METRICS):
                fine_without = self._fine_without(spec, WITHOUT_S if isinstance(error, DeadlineExceeded) else limit_s)
            self._emit(LogLine(f"{spec.id}: {reasons[0].splitlines()[0]}: measuring once more"))
            lost = measured.lost
            if needs_more_trials(measured, self.run, METRICS):
                more = max(TRIALS_IF_APART, spec.trial.count)
                spec = replace(spec, trial=spec.trial.changed({"count": more}))
            measured, _ = self._attempt(spec, limit_s)
            update: dict[str, object] = {"remeasured_because": reasons, "lost": []}
            if lost and measured.lost:
                # Lost twice, and the restored DUT answered in between: the ruleset is the cause.
                update |= {"lost": lost + measured.lost, "problems": []}
            measured = measured.model_copy(update=update)
            if fine_without and suspected(measured, self.run, METRICS):
                measured = measured.model_copy(update={"fine_without": True})
        return measured

    def _fine_without(self, spec: MeasurementSpec, limit_s: float) -> bool:
        """Whether the same can be measured without the ruleset. If so, the host is not what keeps it from that."""
        self._emit(LogLine(f"{spec.id}: in doubt: measuring the same without the ruleset"))
        if self._recovery.restore():
            self._measurer.forget()
        self._measurer.put_back_ends()
        alone = replace(spec, id=f"{spec.id} without it", ruleset="nothing", files=[], remarks=[], interleaved=None)
        found, _ = self._attempt(alone, limit_s)
        return found.refused is None and not all_doubts(found, self.run, METRICS)

    def _attempt(self, spec: MeasurementSpec, limit_s: float | None) -> tuple[Measured, CannotMeasure | None]:
        """The measurement, and the error that ended it."""
        if self._dead is not None and not self._revived():
            return _unmeasured(spec, self._dead), None
        try:
            if clock_of(self.run.testbed).repeats:
                measured = self._measurer.measure(spec, limit_s)
            else:
                measured = interleave_trials(self._measurer.measure, spec, limit_s)
            if not measured.problems or not self._link_is_lost():
                return measured, None
            return _unmeasured(spec, str(self._dead)), None
        except CannotStart as error:
            return _unmeasured(spec, error.message), error
        except CannotMeasure as error:
            if self._link_is_lost():
                return _unmeasured(spec, str(self._dead)), error
            if not (self._recovery.restore() or self._recovery.reconnect()):
                # Nothing can be measured until the nodes answer again; earlier results stay valid.
                self._dead = error.message
            lost = [error.message] if isinstance(error, DutLost) else []
            return _unmeasured(spec, error.message, lost=lost, suspected=isinstance(error, Hindered)), error

    def _revived(self) -> bool:
        """Whether nodes that did not answer do so now. A lost link does not come back."""
        if self._revivals >= REVIVALS or self._link_is_lost():
            return False
        self._revivals += 1
        if not (self._recovery.restore() or self._recovery.reconnect()):
            return False
        self._measurer.forget()
        self._dead = None
        return True

    def _link_is_lost(self) -> bool:
        """Whether the host lost a link. No ruleset does that, and nothing can be measured from here on."""
        lost = self._lost_link()
        if lost is not None:
            self._dead = f"{lost.message}; next: {lost.hint}"
        return lost is not None


def _unmeasured(spec: MeasurementSpec, problem: str, lost: Sequence[str] = (), *, suspected: bool = False) -> Measured:
    return Measured(
        id=spec.id,
        title=spec.title,
        ruleset=spec.ruleset,
        ruleset_hash="",
        traffic=spec.traffic,
        metric=spec.metrics[0],
        problems=[problem],
        suspects=[problem] * suspected,
        lost=list(lost),
    )


def _figures(measured: Measured, run: Run) -> dict[str, float]:
    """By metric, the figure; none of a measurement that is in doubt."""
    if measured.refused or measured.problems:
        return {}
    found = {name: figure(measured, METRICS[name], run.testbed) for name in measured.metrics}
    return {name: value.median for name, value in found.items() if value}


def summary(measured: Measured, run: Run) -> str:
    """One measurement in a few words, for the progress line."""
    if measured.refused:
        return f"refused: {measured.refused.splitlines()[0]}"
    if measured.problems:
        return measured.problems[0].splitlines()[0]
    figures = ((METRICS[name], figure(measured, METRICS[name], run.testbed)) for name in measured.metrics)
    metric, value = next(((metric, found) for metric, found in figures if found), (None, None))
    if metric is None or value is None:
        return "measured" if measured.deliveries else "loaded"
    scatter = clock_of(run.testbed).scatter_in_words(value)
    rounded = float(f"{value.median * metric.display.factor:.4g}")
    shown = f"{rounded:,.10g} {metric.display.unit or metric.display.label}"
    return f"{shown}, {scatter}" if scatter else shown


@contextlib.contextmanager
def open_session(context: RunContext, emit: EventSink) -> Iterator[Session]:
    """A session on the lab's machines. Each measurement begins with the DUT in its start state.

    Machines that already run are used and left running. Machines started here are destroyed at the end, whatever
    happens, unless `keep`. Machines of another lab must be up; they are started here only where the context says so.
    If another session uses the machines, this one waits and names it. Raises CannotMeasure, BadInput.
    """
    name = context.machines_lab.id
    held = machines_held(context.project, name, context.lab.id, lambda holder: emit(MachinesBusy(name, holder)))
    with held, _machines_up(context, emit) as session:
        yield session


@contextlib.contextmanager
def _machines_up(context: RunContext, emit: EventSink) -> Iterator[Session]:
    lab = context.machines_lab
    choice = engines.choose(context.project, context.engine)
    if context.engine_why:
        emit(Warned(f"engine: {choice.name}, because {context.engine_why}"))
    machines = Machines(context.project, context.topology, lab, context.testbed)
    started = False
    try:
        if not machines.running():
            if context.other_lab is not None:
                raise CannotMeasure(f"{lab.id} is not up, and --machines starts none", f"vagrant up {lab.id}")
            emit(StepStarted(f"vagrant up {lab.id}"))
            started = True
            machines.up(lambda line: emit(LogLine(line)))
        topology = context.topology
        forwarded = topology.ports.address, topology.ssh_port(lab.number, "dut")
        with (
            modelled(context.core, machines, forwarded, emit) as core,
            open_nodes(context, machines, choice, emit, core) as opened,
        ):
            measurer, recovery, facts = opened
            run, stale = new_run(context, machines, choice.name, facts)
            for reason in stale:
                emit(Warned(reason))
            yield Session(context, measurer, recovery, run, machines.ssh_config, emit, machines.lost_link)
    finally:
        if started and not context.keep:
            emit(StepStarted(f"vagrant destroy {lab.id}"))
            machines.destroy(lambda line: emit(LogLine(line)))
