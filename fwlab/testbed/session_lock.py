# SPDX-License-Identifier: GPL-2.0-or-later
"""One session at a time on a lab's machines: a file lock in their folder, which says who holds it.

The kernel releases the lock however its holder ends. Not filelock, because the lock file itself names the holder: older
versions of filelock truncate the file at each attempt, and none says what a lock file may contain.
"""

import contextlib
import fcntl
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from fwlab.checkout.atomic_write import write_errors_as
from fwlab.checkout.project import Project
from fwlab.model.errors import CannotMeasure

#: How often a waiting session tries again (s).
POLL_S = 0.3
MAX_COMMAND = 100


@dataclass(frozen=True)
class Holder:
    """Who is measuring: the lab, the command as typed, its process id, and since when (local time)."""

    lab: str
    command: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"`{self.command}` (pid {self.pid}, since {self.since}), which measures {self.lab}"


def lock_path(project: Project, machines: str) -> Path:
    """The file that a session on these machines locks."""
    return project.state / machines / "session.lock"


@contextlib.contextmanager
def machines_held(project: Project, machines: str, lab: str, waits: Callable[[str], None]) -> Iterator[None]:
    """Hold the machines of lab `machines` to measure `lab`. `waits` is called once for each holder that we wait for."""
    path = lock_path(project, machines)
    with write_errors_as(path, CannotMeasure):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
    with file:
        _wait(file, waits)
        _write(file, json.dumps(asdict(Holder(lab, _command(), os.getpid(), time.strftime("%H:%M:%S")))))
        try:
            yield
        finally:
            _write(file, "")


def holder_of(project: Project, machines: str) -> str | None:
    """Who holds the machines of this lab; None if nobody does."""
    try:
        file = lock_path(project, machines).open("rb", buffering=0)
    except OSError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _holder(file) or "another command"
    return None


def _wait(file: BinaryIO, waits: Callable[[str], None]) -> None:
    named: str | None = None
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = _holder(file)
            if named is None or holder not in (None, named):
                named = holder or "another command"
                waits(named)
            time.sleep(POLL_S)


def _holder(file: BinaryIO) -> str | None:
    """None until the holder has written its record."""
    file.seek(0)
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        return str(Holder(**json.loads(file.read(10_000))))
    return None


def _write(file: BinaryIO, text: str) -> None:
    with contextlib.suppress(OSError):  # a full disk: the lock is held anyway
        file.seek(0)
        file.truncate()
        file.write(text.encode())


def _command() -> str:
    program, *words = sys.argv or ["fwlab"]
    path = Path(program)
    name = path.parent.name if path.name == "__main__.py" else path.name
    line = "".join(c if c.isprintable() else "?" for c in shlex.join([name, *words]))
    return line if len(line) <= MAX_COMMAND else line[: MAX_COMMAND - 1] + "…"
