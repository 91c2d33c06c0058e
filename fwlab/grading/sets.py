# SPDX-License-Identifier: GPL-2.0-or-later
"""Further sets of machines: each grades some of the students at the same time, as a process of its own.

Such a process is an ordinary grading (`pytest --testinfra`): of a folder that has its students' files as they were
read, on the machines of another lab, with a results folder of its own. The first set's grading reads those results as
they come, and takes them over as `--resume` does. Whatever a set leaves open, for whatever reason, the first set
measures.
"""

import contextlib
import ctypes
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fwlab.grading.graded import Work
from fwlab.grading.grading_plan import GradingPlan
from fwlab.grading.guard import explicit
from fwlab.grading.known import Known
from fwlab.grading.record import FILE
from fwlab.grading.resume import Earlier, read_earlier
from fwlab.host.process import wait_or_kill
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Lab
from fwlab.testbed.machine_record import machines_made
from fwlab.testbed.machines import Machines

#: A set that is told to stop destroys its machines first. Vagrant may take so long (s).
STOP_S = 420
#: Lines of a set's output that are shown if it could not do its work.
SHOWN_LINES = 15
_PR_SET_PDEATHSIG = 1


@dataclass
class _Set:
    """One further set. `found`: its machines were there before; `read`: which version of its record was read."""

    number: int
    machines: Lab
    works: frozenset[str]
    folder: Path
    found: bool
    process: subprocess.Popen[bytes]
    read: int = 0
    ended: bool = False

    @property
    def name(self) -> str:
        return f"set {self.number} (machines of {self.machines.id})"


class Sets:
    """The further sets of one grading. `known`: what it knows so far; `tell` prints what became of the sets."""

    def __init__(self, plan: GradingPlan, lab: str, known: Known, tell: Callable[[str], None]) -> None:
        self._plan, self._lab, self._known, self._tell = plan, lab, known, tell
        self._sets: list[_Set] = []
        self._stopped = False

    def start(self, works: Sequence[Work]) -> None:
        """Give each set its share of these works, and start it. The first set's share is left to the caller."""
        for number, (share, machines) in enumerate(
            zip(shares(works, 1 + len(self._plan.sets))[1:], self._plan.sets, strict=False), 2
        ):
            try:
                self._sets.append(self._started(number, machines, share))
            except (OSError, CannotMeasure) as error:
                self._tell(f"set {number} (machines of {machines.id}) is not used: {error}")
            else:
                students = len({work.who for work in share})
                self._tell(f"{self._sets[-1].name}: {len(share)} rulesets of {students} students")

    def turn(self, work: Work) -> int:
        """The number of the set that grades the work."""
        return next((one.number for one in self._sets if work.name in one.works), 1)

    def working_on(self, work: Work) -> bool:
        """Whether a set that is to grade the work has not ended."""
        return any(work.name in one.works and not one.ended for one in self._sets)

    def news(self) -> Iterator[tuple[str, frozenset[str], Earlier]]:
        """What sets have saved since the last call, with their names and works. Then tells which have ended."""
        for one in self._sets:
            ended = one.process.poll() is not None  # before reading, so that nothing is saved after it
            if one.ended:
                continue
            earlier = self._saved(one)
            if earlier is not None:
                yield one.name, one.works, earlier
            if ended:
                one.ended = True
                self._after(one)

    def stop(self) -> None:
        """End all sets; those that started machines destroy them first. One that has done its work ends by itself."""
        self._stopped = True
        running = [one for one in self._sets if one.process.poll() is None]
        for one in running:
            if self._left(one):
                one.process.terminate()
        for one in running:
            wait_or_kill(one.process, STOP_S)

    def _started(self, number: int, machines: Lab, works: Sequence[Work]) -> _Set:
        assert self._plan.submissions is not None  # noqa: S101 - sets are for classes
        folder = self._plan.submissions.scratch / f"set-{number}"
        for work in works:
            own = folder / "class" / work.who / work.exercise.id
            own.mkdir(parents=True)
            for file in work.handed_in.files if work.handed_in else ():
                shutil.copyfile(file.copy, own / file.name)
            for name in work.handed_in.ignored if work.handed_in else ():
                (own / name).mkdir() if name.endswith("/") else (own / name).touch()  # it is told there, too
        found = self._made(machines)
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                self._command(machines, folder),
                cwd=self._plan.project.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the first set, which stops the others
            )
        return _Set(number, machines, frozenset(work.name for work in works), folder, found, process)

    def _command(self, machines: Lab, folder: Path) -> list[str]:
        options, context = self._plan.options, self._plan.contexts[self._lab]
        words = [sys.executable, "-m", "pytest", *explicit(), "-p", "no:cacheprovider", "-q", "-rsE", "--color=no"]
        words += ["--testinfra", "--one-of-sets", f"--lab={self._lab}", f"--machines={machines.id}"]
        words += [f"--submissions={folder / 'class'}", f"--results={folder / 'results'}"]
        words += [f"--traffic-seed={context.seed}", f"--testbed={options.testbed}", f"--engine={context.engine}"]
        words += ["--further"] if options.further else []
        return words + ([f"--course={options.course.absolute()}"] if options.course else [])

    def _saved(self, one: _Set) -> Earlier | None:
        """The set's results, if they are new. Files that cannot be read are told; their works are measured again."""
        folder = replace(self._plan, results=one.folder / "results").class_folder(self._lab)
        try:
            version = (folder / FILE).stat().st_mtime_ns
        except OSError:
            return None
        if version == one.read:
            return None
        one.read = version
        try:
            earlier, why = read_earlier(self._plan.project, self._plan.contexts[self._lab].lab, folder)
        except BadInput as error:
            earlier, why = None, error.message
        if earlier is None:
            self._tell(f"{one.name}: its results are not used: {why}")
        return earlier

    def _after(self, one: _Set) -> None:
        """Say what a set left open and why, and destroy machines that it left behind."""
        left = self._left(one)
        if left and not self._stopped:
            what = f"exit code {one.process.returncode}, {left} of {len(one.works)} rulesets left to the first set"
            said = (one.folder / "output").read_text(errors="replace").splitlines()[-SHOWN_LINES:]
            self._tell("\n".join([f"{one.name} has ended: {what}", *said]))
        self._clear_away(one)

    def _left(self, one: _Set) -> int:
        """How many of its works nobody has taken over."""
        return sum((self._lab, name) not in self._known.kept for name in one.works)

    def _clear_away(self, one: _Set) -> None:
        context = self._plan.contexts[self._lab]
        try:
            if not one.found and self._made(one.machines):
                machines = Machines(context.project, context.topology, one.machines, context.testbed)
                machines.destroy(lambda _line: None)
        except CannotMeasure as error:
            self._tell(f"{one.name}: its machines are left: {error}")

    def _made(self, machines: Lab) -> bool:
        context = self._plan.contexts[self._lab]
        return machines_made(context.project, context.topology, machines.number, machines.id) is not None


def shares(works: Sequence[Work], count: int) -> list[list[Work]]:
    """The works of as many sets, as equal in number as possible; those of a student are in one share. None is empty."""
    students: dict[str, list[Work]] = {}
    for work in works:
        students.setdefault(work.who, []).append(work)
    found: list[list[Work]] = [[] for _ in range(count)]
    for own in sorted(students.values(), key=len, reverse=True):
        min(found, key=len).extend(own)
    return [share for share in found if share]


def end_with_first() -> None:
    """Called by a further set's process: the kernel ends it as `stop` does if the first set's process is killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
