# SPDX-License-Identifier: GPL-2.0-or-later
"""What every run on an emulated host has in common: its cases, one run at a time, and where its record goes.

The record is a log with the time of each line, and one JSON document of its steps.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import SUFFIX, name_of, raw_result, write_document
from fwlab.host.environment import cache_directory
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput, CannotMeasure

#: Stands in every document, because figures of an emulated host look like those of a slow one.
MARK = "emulated host: shows that the real testbed works, not how fast it is"


@dataclass(frozen=True)
class Step:
    """One step. `says`: what was found; `ok`: whether that is what was wanted."""

    name: str
    command: str
    seconds: float
    ok: bool
    says: str


@dataclass
class Record:
    """The steps so far. Every line goes to `log`, and shortened to the terminal.

    note      what the document says about itself
    runs      raw results of the measurements, by kind of link
    complete  whether the run came to its end: an interrupted one is no success
    """

    log: Path
    note: str = MARK
    facts: dict[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    runs: dict[str, Any] = field(default_factory=dict)
    complete: bool = False
    began: float = field(default_factory=time.monotonic)

    def tell(self, line: str) -> None:
        """One line of a command's output."""
        text = f"{time.monotonic() - self.began:8.1f}  {line}"
        with self.log.open("a") as file:
            file.write(f"{text}\n")
        sys.stderr.write(f"{text[:160]}\n")
        sys.stderr.flush()

    def add(self, step: Step) -> None:
        """Note a step that ended."""
        self.steps.append(step)
        self.tell(f"{'ok    ' if step.ok else 'FAILED'} {step.name} ({step.seconds:.0f} s): {step.says}")

    @property
    def ok(self) -> bool:
        """Whether the run came to its end, and all steps did what they should."""
        return self.complete and all(step.ok for step in self.steps)

    def document(self) -> dict[str, Any]:
        """Everything, as results/ keeps it."""
        return {
            "note": self.note,
            "complete": self.complete,
            "ok": self.ok,
            "wall_s": round(time.monotonic() - self.began),
            "host": self.facts,
            "steps": [asdict(step) for step in self.steps],
        }

    def write(self, path: Path) -> None:
        """Write the document, the log, and the raw results of each link as NAME-LINK.json.gz."""
        write_document(path, json.dumps(self.document(), indent=1) + "\n")
        shutil.copyfile(self.log, path.with_name(f"{name_of(path)}.log"))
        for link, run in self.runs.items():
            write_document(path.with_name(f"{name_of(path)}-{link}{SUFFIX}"), json.dumps(run, indent=1) + "\n")


def chosen_cases(project: Project, lab: str, words: str) -> tuple[str, ...]:
    """Cases of a lab by name, separated by commas. Raises BadInput for one that does not exist."""
    known = load_lab(project, lab).cases
    cases = tuple(word for word in words.split(",") if word)
    if not cases or (unknown := [case for case in cases if case not in known]):
        wrong = f"{lab} has no case {', '.join(unknown)}" if cases else "no case"
        raise BadInput(f"--cases: {wrong}", f"fwlab list {lab}")
    return cases


@contextlib.contextmanager
def recorded(project: Project, name: str, note: str = MARK) -> Iterator[tuple[Path, Path, Record]]:
    """The folder of these runs in the cache, one for this run alone, and its record, which ends in results/NAME.

    A record without steps is not written; it is complete unless the body raises. Raises CannotMeasure if another runs.
    """
    folder = cache_directory() / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / "lock", timeout=0)
        lock.acquire()
    except Timeout as error:
        raise CannotMeasure(f"another run uses {folder}", "wait until it ends") from error
    with lock, tempfile.TemporaryDirectory(dir=folder, prefix="run-") as own:
        work = Path(own)
        record = Record(work / "log", note)
        out = free_name(project, f"{name}/{datetime.date.today().isoformat()}")
        try:
            yield folder, work, record
            record.complete = True
        finally:
            if record.steps:
                record.write(out)
                record.tell(f"written: {out.relative_to(project.root)}, its .log, and raw results")


def free_name(project: Project, day: str) -> Path:
    """DAY.json.gz, or DAY-2.json.gz and so on if that exists: a result is never replaced."""
    numbers = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    return next(path for number in numbers if not (path := raw_result(project, f"{day}{number}")).exists())
