# SPDX-License-Identifier: GPL-2.0-or-later
"""One session with one lab: machines up, cases and exercises measured, machines down again if we started them."""

from __future__ import annotations

import contextlib
import datetime
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import fwlab
from fwlab.dut.linux import LinuxDut
from fwlab.generator import selection as engines
from fwlab.generator.sink import Sink
from fwlab.generator.traffic_store import FIRST_LINK, Tables
from fwlab.host.project import Project
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import worth_again
from fwlab.measure.measurer import Measurer
from fwlab.measure.recovery import Recovery
from fwlab.metrics.measurement import Nodes, Task
from fwlab.model.errors import CannotMeasure, Overdue
from fwlab.model.events import ItemBegan, ItemEnded, Listener, PlanMade, StepBegan, Told, Waits
from fwlab.model.lab import Lab
from fwlab.model.results import DutFacts, Measured, Run
from fwlab.model.topology import Topology
from fwlab.testbed.machines import Machines
from fwlab.testbed.saved_state import SavedState
from fwlab.testbed.selection import TestbedRequest, host_facts
from fwlab.testbed.session_lock import machines_held
from fwlab.testbed.throttle import STEPS, qemu_of, slowed

LAST_LINK = "dut-sink"
#: One submission may take so long (s). The slowest exercise was seen to take 89 on a busy host.
EXERCISE_S = 240.0


@dataclass(frozen=True)
class Setting:
    """Everything that a session is about. `stand` is the lab whose machines are used: the lab's own, or another's.

    All labs have the same three nodes, so one that is up can serve the others.
    """

    project: Project
    topology: Topology
    lab: Lab
    testbed: TestbedRequest
    seed: int = 1
    keep: bool = False
    borrowed: Lab | None = None
    engine: str = engines.AUTO

    @property
    def stand(self) -> Lab:
        return self.borrowed or self.lab

    @cached_property
    def tables(self) -> Tables:
        """The lab's traffic as frames. What was looked at before the session is not built again in it."""
        return Tables(self.project, self.topology, self.lab, self.seed)


class Session:
    """A lab's machines, ready to measure. Made by `open_session`."""

    def __init__(
        self, setting: Setting, measurer: Measurer, recovery: Recovery, run: Run, ssh_config: Path, told: Listener
    ) -> None:
        self.setting, self.run, self.ssh_config = setting, run, ssh_config
        self._measurer, self._recovery, self._tell = measurer, recovery, told
        self._dead: str | None = None

    def measure_cases(self, tasks: list[Task]) -> None:
        """Measure and add to the run's cases. A machine that dies makes this and all that follow inconclusive."""
        self.run.cases.extend(self._measure(tasks))

    def measure_exercises(self, tasks: list[Task]) -> None:
        """As measure_cases, of rulesets that may break the DUT: its state is saved before the first one."""
        with contextlib.suppress(CannotMeasure):  # whoever measures next will find out, and say so
            self._recovery.prepare()
        self.run.exercises.extend(self._measure(tasks, limit_s=EXERCISE_S))

    def _measure(self, tasks: list[Task], limit_s: float | None = None) -> Iterator[Measured]:
        self._tell(PlanMade(len(tasks)))
        for task in tasks:
            self._tell(ItemBegan(task.id))
            found = self._one(task, limit_s)
            ok = not (found.problems or found.refused or found.lost)
            self._tell(ItemEnded(task.id, summary(found, self.run), ok))
            yield found

    def _one(self, task: Task, limit_s: float | None) -> Measured:
        """Measured, and once more where the first figures are in doubt: a busy host may leave it alone the next time.

        The second measurement counts, whatever it says; why there was one goes with it.
        """
        found, again = self._attempt(task, limit_s)
        reasons = worth_again(found, self.run)
        if reasons and again and self._dead is None:
            self._tell(Told(f"{task.id}: {reasons[0].splitlines()[0]}: measured once more"))
            lost = found.lost
            found, _ = self._attempt(task, limit_s)
            found.measured_again = reasons
            if lost and found.lost:
                # Twice in a row, and in between the DUT was put back and answered: it was the ruleset.
                found.lost, found.problems = lost + found.lost, []
            else:
                found.lost = []
        return found

    def _attempt(self, task: Task, limit_s: float | None) -> tuple[Measured, bool]:
        """What was found, and whether it is of any use to try once more."""
        if self._dead is not None:
            return _unmeasured(task, self._dead), False
        try:
            return self._measurer.measure(task, limit_s), True
        except CannotMeasure as error:
            if not self._recovery.restore():
                # Without the machine nothing after this can be measured; the results so far are good.
                self._dead = error.message
            found = _unmeasured(task, error.message)
            overdue = isinstance(error, Overdue)
            found.lost = [] if overdue else [error.message]
            return found, not overdue


def _unmeasured(task: Task, problem: str) -> Measured:
    return Measured(
        id=task.id,
        title=task.title,
        ruleset=task.ruleset,
        ruleset_hash="",
        traffic=task.traffic,
        metric=task.metrics[0],
        problems=[problem],
    )


def refuse_wrong_traffic(setting: Setting, traffics: Iterable[str | None]) -> None:
    """Raises BadInput where one of these cannot be played, naming its profile; no machine is needed for it.

    A wrong profile is then told before machines are started, and before figures are measured that go with them.
    """
    choice = engines.choose(setting.project, setting.engine)
    for name in dict.fromkeys(name for name in traffics if name is not None):
        connections = setting.tables.connections(name)
        packets = name if connections is None else connections.beside
        if packets is not None:
            engines.check(choice, setting.tables, packets)


@contextlib.contextmanager
def open_session(setting: Setting, tell: Listener) -> Iterator[Session]:
    """The lab's machines up and its DUT in the start state.

    Machines that run already are used and left running; those started here are destroyed again, whatever
    happens, unless `keep`. Another lab's are only borrowed: they are up, or nothing is measured.
    Another session on these machines is waited for, and named. Raises CannotMeasure, BadInput.
    """
    stand = setting.stand.id
    held = machines_held(setting.project, stand, setting.lab.id, lambda holder: tell(Waits(stand, holder)))
    with held, _machines_up(setting, tell) as session:
        yield session


@contextlib.contextmanager
def _machines_up(setting: Setting, tell: Listener) -> Iterator[Session]:
    lab = setting.stand
    choice = engines.choose(setting.project, setting.engine)
    machines = Machines(setting.project, setting.topology, lab, setting.testbed)
    started = False
    try:
        if not machines.running():
            if setting.borrowed is not None:
                raise CannotMeasure(f"{lab.id} is not up, and --machines starts none", f"vagrant up {lab.id}")
            tell(StepBegan(f"vagrant up {lab.id}"))
            started = True
            machines.up(lambda line: tell(Told(line)))
        with _nodes(setting, machines, choice, tell) as (measurer, recovery, facts):
            run = _new_run(setting, machines, choice.name, facts)
            yield Session(setting, measurer, recovery, run, machines.ssh_config, tell)
    finally:
        if started and not setting.keep:
            tell(StepBegan(f"vagrant destroy {lab.id}"))
            machines.destroy(lambda line: tell(Told(line)))


@contextlib.contextmanager
def _nodes(
    setting: Setting, machines: Machines, choice: engines.Choice, tell: Listener
) -> Iterator[tuple[Measurer, Recovery, DutFacts]]:
    topology, tables = setting.topology, setting.tables
    devices = [topology.end(FIRST_LINK, "dut").dev, topology.end(LAST_LINK, "dut").dev]
    engine = engines.make(choice, machines.ssh("generator"), topology, machines.testbed)
    sink = Sink(machines.ssh("sink"), topology.end(LAST_LINK, "sink").dev)
    forwarded = topology.ports.address, topology.ssh_port(setting.stand.number, "dut")
    if machines.testbed.slows_the_dut:
        slower, steps = _slower(*forwarded), len(STEPS)
    else:
        slower, steps = (lambda *_, **__: contextlib.nullcontext()), 1
    with contextlib.closing(engine), LinuxDut(machines.ssh("dut"), devices) as dut:
        facts = _dut_facts(dut)
        others = [machines.ssh("generator"), machines.ssh("sink")]
        recovery = Recovery(
            dut, machines.ssh("dut"), lambda: SavedState(*forwarded), others, lambda line: tell(Told(line))
        )
        dut.reset()
        ring = topology.machine.receive_ring
        tcp = engines.make_ends(choice, machines.ssh("generator"), machines.ssh("sink"), topology, machines.testbed)
        nodes = Nodes(dut, engine, sink, tables, setting.lab.classes, slower, steps, ring, tcp, recovery.restore)
        with contextlib.closing(recovery):
            yield Measurer(nodes), recovery, facts


def _slower(address: str, port: int) -> Callable[..., contextlib.AbstractContextManager]:
    """Slows the DUT's QEMU, which is another process once the DUT was put back."""

    @contextlib.contextmanager
    def slower(step: int, *, loop: bool = False) -> Iterator[None]:
        with slowed(qemu_of(address, port), step, loop=loop):
            yield

    return slower


def _dut_facts(dut: LinuxDut) -> DutFacts:
    answer = dut.hello()
    if answer.pop("packet_sockets"):
        raise CannotMeasure(
            "a program on the DUT holds a packet socket open, which stamps and slows every packet",
            "on the DUT: `ss -0 -p` names it; or `vagrant reload LAB`",
        )
    return DutFacts(**answer)


def _new_run(setting: Setting, machines: Machines, engine: str, dut: DutFacts) -> Run:
    return Run(
        lab=setting.lab.id,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        commit=commit(setting.project),
        fwlab=fwlab.__version__,
        seed=setting.seed,
        host=host_facts(),
        testbed=machines.testbed.facts(machines.made, engine),
        dut=dut,
    )


def commit(project: Project) -> str:
    """The checkout's commit, with a plus sign if files differ from it; "unknown" outside git."""
    git = ["git", "-C", str(project.root)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True)
    except OSError:
        return "unknown"
    if head.returncode:
        return "unknown"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def summary(found: Measured, run: Run) -> str:
    """One measurement in a few words, for the progress line."""
    if found.refused:
        return f"refused: {found.refused.splitlines()[0]}"
    if found.problems:
        return found.problems[0].splitlines()[0]
    measured = figure(found, found.metric, run.testbed)
    if measured is None:
        return "loaded"
    return f"{measured.median:,.4g} {found.metric.unit}, spread {measured.spread:.2%}"
