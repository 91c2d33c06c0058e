# SPDX-License-Identifier: GPL-2.0-or-later
"""Real grading on fake machines, which a submission controls.

A file of a submission may hold the line `# on the DUT: WORD`, where WORD is

    leaks    the attacker's packets arrive: the check fails
    idle     the DUT was never saturated: inconclusive
    hides    so it was, and it is not without the ruleset: the ruleset is to blame
    dies     the DUT dies, and stays dead
    raises   a bug in our own code
    stops    Ctrl-C while it is measured
    slow     it takes its time
    crashes  the kernel kills the worker's process

Otherwise the ruleset passes. Machines report on standard output when they are started and released.
FAKE_HOST=lost|empty    what Testinfra finds on the DUT (default: everything that the files contain)
FAKE_WHILE_MEASURING    a command to run during the measurement
FAKE_DEAD=REASON        the machines never answer
FAKE_REPORT=raises      a bug where the report is written
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from fwlab.grading import engine, grader
from tests.fakes import factories

SAYS = re.compile(r"^# on the DUT: (\w+)$", re.MULTILINE)


class FakeSession:
    """A fake session. A dead DUT makes this and all later measurements inconclusive."""

    def __init__(self, context) -> None:
        self.context, self.ssh_config = context, Path("/none")
        self.run = factories.a_run([], lab=context.lab.id, seed=context.seed)
        self._dead = os.environ.get("FAKE_DEAD")

    @property
    def dead(self) -> bool:
        return self._dead is not None

    def for_lab(self, context) -> FakeSession:
        return FakeSession(context)

    def measure_cases(self, tasks: list) -> None:
        self.run.cases.extend(self._measure(task, "") for task in tasks)

    def start_over(self) -> None:
        print("the DUT is restored", flush=True)

    def measure_exercises(self, tasks: list, own=None, *, trusted: bool = False) -> None:
        for task in tasks:
            said = SAYS.search("\n".join(file.text for file in task.files))
            self.run.exercises.append(self._measure(task, said[1] if said else ""))

    def _measure(self, task, word: str):
        print(f"measured: {task.ruleset}: {','.join(file.name for file in task.files)}", flush=True)
        if hook := os.environ.get("FAKE_WHILE_MEASURING"):
            os.system(hook)
        if word == "raises":
            raise RuntimeError("a bug")
        if word == "stops":
            raise KeyboardInterrupt
        if word == "slow":
            time.sleep(1)
        if word == "crashes":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "dies":
            self._dead = "the DUT does not answer"
        problems = [self._dead] if self._dead else ["the DUT was not saturated"] * (word in ("idle", "hides"))
        blame = {"suspects": problems, "fine_without": True} if word == "hides" else {}
        arrived = 900 if word == "leaks" else 0
        known = {name: getattr(task, name) for name in ("id", "title", "ruleset", "traffic", "remarks")}
        return factories.attempt(250_000, 250_000, arrived=arrived, problems=problems, **blame, **known)


@contextlib.contextmanager
def fake_session(context, tell):
    print(f"machines up: {context.machines_lab.id}", flush=True)
    try:
        yield FakeSession(context)
    finally:
        print("machines down", flush=True)


class FakeHost:
    """A fake host that lists a large number of rules in every command, and forwards."""

    def run(self, command: str, *arguments: str) -> SimpleNamespace:
        if os.environ.get("FAKE_HOST") == "lost":
            return SimpleNamespace(rc=255, stdout="", stderr="ssh: connect to host: Connection refused")
        found = "0" if os.environ.get("FAKE_HOST") == "empty" else "1000"
        return SimpleNamespace(rc=0, stdout=found + "\n", stderr="")

    def sysctl(self, _name: str) -> int:
        return 1


@contextlib.contextmanager
def fake_machines() -> Iterator[None]:
    """Until the end, gradings in this process have these machines."""
    with (
        mock.patch.object(grader, "open_session", fake_session),
        mock.patch.object(grader.Grader, "host", return_value=FakeHost()),
        mock.patch.object(engine, "write_report", wraps=engine.write_report) as report,
    ):
        if os.environ.get("FAKE_REPORT"):
            report.side_effect = RuntimeError("a bug")
        yield
