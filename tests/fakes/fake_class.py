# SPDX-License-Identifier: GPL-2.0-or-later
"""A pytest plugin (`-p tests.fakes.fake_class`): real grading on fake machines, which a submission controls.

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
FAKE_RECORD=yes         while machines are up there is their record, as `vagrant up` writes it
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace

from fwlab.grading import engine, grader
from fwlab.testbed.machine_record import record_path
from tests.fakes import factories

RECORD = """{"format": "fwlab-machines/1", "lab": "", "testbed": "virtual", "machines": {"dut": {
"domain": "", "box": "", "accelerator": "tcg", "icount_shift": 2, "link": "socket"}}}"""
SAYS = re.compile(r"^# on the DUT: (\w+)$", re.MULTILINE)


class FakeSession:
    """A fake session. A dead DUT makes this and all later measurements inconclusive."""

    def __init__(self, context) -> None:
        self.context, self.run, self.ssh_config = (
            context,
            factories.a_run([], lab=context.lab.id, seed=context.seed),
            Path("/none"),
        )
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
    record = record_path(context.project, context.machines_lab.id)
    try:
        if os.environ.get("FAKE_RECORD"):
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(RECORD)
        yield FakeSession(context)
    finally:
        record.unlink(missing_ok=True)
        print("machines down", flush=True)


class FakeHost:
    """A fake host that lists a large number of rules in every command. It forwards, if it is not `broken`."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken

    def run(self, command: str, *arguments: str) -> SimpleNamespace:
        if os.environ.get("FAKE_HOST") == "lost":
            return SimpleNamespace(rc=255, stdout="", stderr="ssh: connect to host: Connection refused")
        found = "0" if os.environ.get("FAKE_HOST") == "empty" else "1000"
        return SimpleNamespace(rc=0, stdout=found + "\n", stderr="")

    def sysctl(self, _name: str) -> int:
        return 0 if self.broken else 1

    def check_output(self, command: str, *arguments: str) -> str:
        done = self.run(command, *arguments)
        assert done.rc == 0, f"Unexpected exit code {done.rc} for {command}"
        return done.stdout.rstrip()


def broken_report(*_) -> None:
    raise RuntimeError("a bug")


def pytest_configure(config) -> None:
    grader.open_session = fake_session
    if os.environ.get("FAKE_REPORT"):
        engine.write_report = broken_report
    grader.Grader.host = lambda *_: FakeHost()
