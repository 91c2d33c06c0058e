# SPDX-License-Identifier: GPL-2.0-or-later
"""What every run on an emulated host has in common: its cases, one run at a time, and where its record goes."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from fwlab.checkout.project import Project
from fwlab.host.environment import cache_directory
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput, CannotMeasure
from tests.nested_host.record import MARK, Record


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
        out = free_name(project.root / "results" / name, datetime.date.today().isoformat())
        try:
            yield folder, work, record
            record.complete = True
        finally:
            if record.steps:
                record.write(out)
                record.tell(f"written: {out.relative_to(project.root)}, its .log, and raw results")


def free_name(folder: Path, day: str) -> Path:
    """DAY.json, or DAY-2.json and so on if that exists: a result is never replaced."""
    numbers = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    return next(path for number in numbers if not (path := folder / f"{day}{number}.json").exists())
