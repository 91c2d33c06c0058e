# SPDX-License-Identifier: GPL-2.0-or-later
"""Measuring in the background: a command of `fwlab` as a process of its own, and the events that it prints.

So a check from the page is `fwlab check`: it waits for the machines as that does, records the same, and is cancelled as
by Ctrl-C. A page that is reloaded finds the job where it is.
"""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fwlab.model.errors import EXIT_UNMEASURED, BadInput, CannotMeasure

#: The command line of this installation.
FWLAB = (sys.executable, "-m", "fwlab.cli.entry")
#: Longest line of an event (bytes). Longer ones are not shown.
MAX_LINE = 1 << 24
#: Lines of other output that are kept.
MAX_LINES = 200


@dataclass
class Done:
    """A case or an exercise that was measured."""

    item: str
    summary: str
    ok: bool
    figures: dict[str, float]


@dataclass
class Job:
    """One command, while it runs and afterwards.

    words    what is typed behind `fwlab`, or, with `program`, behind that
    lab, about  what it is for: the lab, and an exercise, "" for cases, or another page's name
    estimate_s  how long it will take; 0: not known
    step     what is being done
    item     the case or exercise that is being measured
    trials   by item and metric, what each valid trial gave
    lines    what it said besides, the last of them
    result   what it found, as it would print it
    code     its exit code; None while it runs
    changes  grows with everything that happens, so that a page knows when to draw again
    """

    words: tuple[str, ...]
    lab: str
    about: str
    estimate_s: float = 0.0
    program: str = ""
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    step: str = "starting"
    total: int = 0
    item: str = ""
    done: list[Done] = field(default_factory=list)
    trials: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    result: str = ""
    code: int | None = None
    cancelled: bool = False
    changes: int = 0

    @property
    def line(self) -> str:
        """The command as it would be typed."""
        return shlex.join([self.program or "fwlab", *self.words])

    @property
    def running(self) -> bool:
        """Whether the command has not ended yet."""
        return self.code is None

    @property
    def seconds(self) -> float:
        """For how long it has been running, or ran."""
        return (self.ended or time.monotonic()) - self.began

    def hear(self, event: dict[str, Any]) -> None:
        """Take note of one event (fwlab/model/events.py)."""
        match event.pop("event", None), event:
            case "StepStarted", {"what": what}:
                self.step = what
            case "MachinesBusy", {"machines": machines, "holder": holder}:
                self.step = f"waiting for the machines of {machines}: in use by {holder}"
            case "PlanMade", {"items": items}:
                self.total += items
            case "ItemStarted", {"item": item}:
                self.item = self.step = item
            case "ItemPhase", {"item": item, "phase": phase}:
                self.step = f"{item}: {phase}"
            case "TrialsMade", {"item": item, "metric": metric, "values": values}:
                self.trials.setdefault((item, metric), []).extend(values)
            case "BoundsNarrowed", {"item": item, "trials": trials}:
                self.step = f"{item}: {trials} trials"
            case "ItemFinished", {"item": item, "summary": summary, "ok": ok, "figures": figures}:
                self.done.append(Done(item, summary, ok, figures))
            case "ResultMade", {"text": text}:
                self.result = text
            case "ItemLeftOut", {"item": item, "why": why}:
                self.say(f"{item}: left out: {why}")
            case ("Warned", {"text": line}) | ("LogLine", {"line": line}):
                self.say(line)
        self.changes += 1

    def say(self, line: str) -> None:
        """Keep a line of output, which of a program without events is the step, too."""
        if self.program:
            self.step = line
        self.lines = [*self.lines, line][-MAX_LINES:]
        self.changes += 1


class Jobs:
    """The commands that this server runs: one at a time, because two would disturb each other's figures.

    latest  the one that runs, or ran last
    """

    def __init__(self, folder: Path, command: Sequence[str] = FWLAB) -> None:
        self._folder, self._command = folder, command
        self.latest: Job | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    def state(self) -> tuple[object, ...]:
        """Which job is the latest, what it has told, whether it runs, its seconds: a page that shows it is drawn again
        when this differs."""
        job = self.latest
        return (id(job), job.changes, job.running, int(job.seconds)) if job else ()

    async def start(self, job: Job) -> None:
        """Start the job's command. Raises BadInput while another one runs."""
        if self.latest is not None and self.latest.running:
            raise BadInput(f"{self.latest.line} is running", "wait for it, or cancel it")
        self.latest, self._process = job, None
        try:
            # A session of its own: Ctrl-C in the terminal of `fwlab web` reaches it once, by `close`.
            self._process = await asyncio.create_subprocess_exec(
                *([job.program, *job.words] if job.program else [*self._command, *job.words, "--events"]),
                cwd=self._folder,
                env={**os.environ, "VAGRANT_NO_COLOR": "1"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=MAX_LINE,
            )
        except OSError as error:
            job.say(str(error))
            job.code = EXIT_UNMEASURED
            return
        self._reading = asyncio.create_task(_follow(job, self._process))

    async def document(self, *words: str) -> dict[str, Any]:
        """The JSON document that a short command prints, whatever its exit code. Raises CannotMeasure."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *words,
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complaint = await process.communicate()
        try:
            found: dict[str, Any] = json.loads(said)
        except ValueError:
            raise CannotMeasure(complaint.decode("utf-8", "replace").strip(), shlex.join(["fwlab", *words])) from None
        return found

    def cancel(self) -> None:
        """End the running command as Ctrl-C does: it stops what it started."""
        job = self.latest
        if job is not None and job.running and not job.cancelled and self._process is not None:
            job.cancelled = True  # once: a second signal would end what puts things back
            job.step = "stopping"
            job.changes += 1
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    async def close(self) -> None:
        """Cancel, and wait until nothing is left."""
        self.cancel()
        if self._reading is not None:
            await self._reading


async def _follow(job: Job, process: asyncio.subprocess.Process) -> None:
    """Read what the command says until it has ended."""
    assert process.stdout is not None  # noqa: S101 - both are pipes
    assert process.stderr is not None  # noqa: S101
    await asyncio.gather(_events(job, process.stdout), _lines(job, process.stderr))
    job.code = await process.wait()
    job.ended = time.monotonic()
    job.changes += 1


async def _events(job: Job, stream: asyncio.StreamReader) -> None:
    async for line in _each(stream):
        try:
            event = json.loads(line)
        except ValueError:
            job.say(line)
            continue
        if isinstance(event, dict):
            job.hear(event)


async def _lines(job: Job, stream: asyncio.StreamReader) -> None:
    async for line in _each(stream):
        job.say(line)


async def _each(stream: asyncio.StreamReader) -> Any:
    """The lines, without their ends. One that is too long is left out."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue
        if not line:
            return
        yield line.decode("utf-8", "replace").rstrip("\n")
