# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands in the background: their events, their end, and what is left when they are cancelled."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from fwlab.cli import EXIT_INTERRUPTED
from fwlab.model.errors import EXIT_PASS, EXIT_UNMEASURED, BadInput
from fwlab.student.progress import read_progress
from fwlab.web.jobs import Job, Jobs
from tests.fakes import student_checkout as checkouts
from tests.fakes.measuring_command import COMMAND
from tests.fakes.student_checkout import EX1, LAB
from tests.unit.web.conftest import until

CHECK = ("check", LAB, EX1, "--testbed", "virtual")


def job(*words: str) -> Job:
    return Job(words, LAB, EX1, 10.0)


def test_a_check_tells_what_it_does_and_is_recorded_as_the_command_records_it(checkout: Path) -> None:
    async def check() -> Job:
        jobs, one = Jobs(checkout, COMMAND), job(*CHECK)
        await jobs.start(one)
        await until(lambda: not one.running)
        return one

    done = asyncio.run(check())
    assert done.code in (EXIT_PASS, 1), done.lines
    assert [(one.item, one.ok) for one in done.done][-1] == (EX1, True)
    assert done.done[-1].figures == {"capacity": 250_000}
    assert "<b>a warning</b>" in done.lines
    assert any(line.startswith(f"{EX1}: not begun yet") for line in done.lines)
    assert len(read_progress(checkouts.lab(checkout)).of(EX1).tries) == 1
    assert (checkout / "reports" / LAB / "check" / "run.json").is_file()


def test_cancelling_ends_the_command_as_ctrl_c_does(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAIT", "300")
    monkeypatch.setenv("ENDED", str(checkout / "ended"))

    async def cancel() -> Job:
        jobs, one = Jobs(checkout, COMMAND), job(*CHECK)
        await jobs.start(one)
        await until(lambda: one.step.endswith(": trials"))
        with pytest.raises(BadInput, match="is running"):
            await jobs.start(job(*CHECK))
        await jobs.close()
        return one

    done = asyncio.run(cancel())
    assert (done.code, done.cancelled) == (EXIT_INTERRUPTED, True)
    assert (checkout / "ended").exists()
    assert read_progress(checkouts.lab(checkout)).of(EX1).tries == []


def test_a_command_that_fails_says_why(checkout: Path) -> None:
    async def fail(command: tuple[str, ...]) -> Job:
        jobs, one = Jobs(checkout, command), job("check", LAB, "ex9")
        await jobs.start(one)
        await until(lambda: not one.running)
        return one

    wrong = asyncio.run(fail(COMMAND))
    assert wrong.code == 2
    assert any("ex9" in line for line in wrong.lines)
    missing = asyncio.run(fail(("/nowhere/fwlab",)))
    assert missing.code == EXIT_UNMEASURED
    assert "/nowhere/fwlab" in missing.lines[0]


def test_output_that_is_no_event_is_kept_as_text(checkout: Path) -> None:
    program = "print('[1]'); print('no json'); print('{\"event\": \"Unheard\"}'); print('x' * (3 << 24))"

    async def run() -> Job:
        jobs, one = Jobs(checkout, (sys.executable, "-c", program)), job()
        await jobs.start(one)
        await until(lambda: not one.running)
        return one

    done = asyncio.run(run())
    assert done.code == 0
    assert done.lines[:1] == ["no json"]
    assert max(map(len, done.lines)) < 3 << 24
