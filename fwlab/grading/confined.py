# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads strangers' files in a child process that may use little time and memory.

The child is forked, because it needs the lab, which takes long to read. Of the parent's threads only the calling one
goes on in it. That is enough: it opens its own files and pipe, prints nothing and starts nothing, so it waits for
no lock that another thread may have held. If it should hang nevertheless, WALL_S ends it.
"""

import errno
import faulthandler
import gc
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from os import _exit
from pathlib import Path
from typing import Any, NoReturn

from fwlab.model.errors import BadInput, CannotMeasure

#: Limits of one child: CPU time (s), memory beyond what the parent has, and time (s), of which a busy host may need
#: much. The costliest exercises, lists of 265 000 addresses, take a second and 25 MiB; those of other labs 0.1 s.
CPU_S = 10
MEMORY = 512 << 20
WALL_S = 300.0
#: An archive of a whole class takes longer, and no more memory: of 25 000 students it took 10 s of CPU time. It has
#: CLASS times a child's time, once more for each CLASS_BYTES, and at most MAX_CLASS times.
CLASS, CLASS_BYTES, MAX_CLASS = 6, 4 << 20, 60
#: How a child says that it had no memory left, or that there is a bug in its work.
_NO_MEMORY, _BUG = 3, 4

#: Errors of the host's disk, which are no student's fault.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EIO}

#: Tells the parent something: any JSON.
Send = Callable[[Any], None]


class DiskFull(BadInput):
    """The host's disk is full. Not the fault of any student."""

    @classmethod
    def at(cls, path: Path, error: OSError) -> "DiskFull":
        """The error for this place."""
        return cls(f"{path}: cannot copy a submission: {error.strerror}", "free space there, or set TMPDIR")


def disk_full(error: OSError) -> bool:
    """Whether this error is the host's."""
    return error.errno in _FULL


@dataclass(frozen=True)
class ChildReport:
    """What a child reported, in order.

    limit  why it did not come to its end
    bug    the error of ours that ended it
    """

    values: list[Any]
    limit: str | None = None
    bug: str | None = None


def confined_result(work: Callable[[], Any], size: int, name: str, hint: str) -> Any:
    """What the work returns, which is JSON; it is done in a child process, and reads `size` bytes of a class.

    Raises BadInput and DiskFull as the work does, BadInput naming `name` if it exceeds the limits, and CannotMeasure
    for an error of ours.
    """

    def send_it(send: Send) -> None:
        try:
            send({"found": work()})
        except BadInput as error:
            send({"disk full" if isinstance(error, DiskFull) else "refused": [error.message, error.hint]})

    report = run_confined(send_it, min(CLASS + size // CLASS_BYTES, MAX_CLASS))
    if report.bug is not None:
        raise CannotMeasure(f"{name}: internal error while reading it: {report.bug}", "report it")
    if report.limit is not None:
        raise BadInput(f"{name}: {report.limit}", hint)
    [value] = report.values
    if "found" in value:
        return value["found"]
    raise DiskFull(*value["disk full"]) if "disk full" in value else BadInput(*value["refused"])


def run_confined(work: Callable[[Send], None], times: int = 1) -> ChildReport:
    """Do the work in a child process; `times` multiplies its limits of time."""
    cpu_s, wall_s = CPU_S * times, WALL_S * times
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing, cpu_s)
    os.close(writing)
    parts: list[bytes] = []
    ended = False
    last = time.monotonic() + wall_s
    try:
        while not ended and select.select([reading], [], [], max(0.0, last - time.monotonic()))[0]:
            parts.append(os.read(reading, 1 << 16))
            ended = not parts[-1]
    finally:
        os.close(reading)
        if not ended:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    values = [json.loads(line) for line in b"".join(parts).split(b"\n")[:-1]]
    if ended and code == 0:
        return ChildReport(values)
    if code == _BUG:
        return ChildReport(values[:-1], bug="".join(map(str, values[-1:])))
    if not ended:
        return ChildReport(values, limit=f"it takes more than {wall_s:g} s to read")
    if code == -signal.SIGXCPU:
        return ChildReport(values, limit=f"it takes more than {cpu_s} s of CPU time to read")
    return ChildReport(values, limit=_why(code))


def _why(code: int) -> str:
    if code == _NO_MEMORY:
        return f"it takes more than {MEMORY >> 20} MiB of memory to read"
    return f"its reader ended with exit code {code}" if code >= 0 else f"its reader ended by signal {-code}"


def _work(work: Callable[[Send], None], writing: int, cpu_s: int) -> NoReturn:
    """The child."""
    code = _BUG
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        faulthandler.disable()  # the parent says it
        gc.disable()  # it would copy the parent's memory page by page
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_CPU, cpu_s)
        _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY)
        with os.fdopen(writing, "w") as out:

            def send(value: Any) -> None:
                out.write(json.dumps(value) + "\n")
                out.flush()

            try:
                work(send)
                code = 0
            except MemoryError:
                code = _NO_MEMORY
            except Exception as error:  # noqa: BLE001 - the parent raises it
                send(f"{type(error).__name__}: {error}")
    finally:
        try:
            _exit(code)
        finally:  # whatever a lab's code has done to `os`: a child must not go on as the parent
            os.kill(os.getpid(), signal.SIGKILL)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, hard))
