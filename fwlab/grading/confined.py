# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads strangers' files in a child process that may use little time and memory.

The child is forked, because it needs the lab, which takes long to read. Of the parent's threads only the calling one
goes on in it. That is enough: it opens files and a pipe of its own, prints nothing and starts nothing, so it waits for
no lock that another thread may have held. If it should hang nevertheless, WALL_S ends it.
"""

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

#: Limits of one child: CPU time (s), memory beyond what the parent has, and time (s), of which a busy host may need
#: much. The costliest exercises, lists of 265 000 addresses, take a second and 25 MiB; those of other labs 0.1 s.
CPU_S = 10
MEMORY = 512 << 20
WALL_S = 300.0
#: How a child says that it had no memory left, or that there is a bug in its work.
_NO_MEMORY, _BUG = 3, 4

#: Tells the parent something: any JSON.
Tell = Callable[[Any], None]


@dataclass(frozen=True)
class Told:
    """What a child told, in order.

    limit  why it did not come to its end
    bug    the error of ours that ended it
    """

    values: list[Any]
    limit: str | None = None
    bug: str | None = None


def told_by(work: Callable[[Tell], None]) -> Told:
    """Do the work in a child process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    parts: list[bytes] = []
    ended = False
    last = time.monotonic() + WALL_S
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
        return Told(values)
    if code == _BUG:
        return Told(values[:-1], bug="".join(map(str, values[-1:])))
    return Told(values, limit=_why(code, ended))


def _why(code: int, ended: bool) -> str:
    if not ended:
        return f"it takes more than {WALL_S:g} s to read"
    if code == -signal.SIGXCPU:
        return f"it takes more than {CPU_S} s of CPU time to read"
    if code == _NO_MEMORY:
        return f"it takes more than {MEMORY >> 20} MiB of memory to read"
    return f"its reader ended with exit code {code}" if code >= 0 else f"its reader ended by signal {-code}"


def _work(work: Callable[[Tell], None], writing: int) -> NoReturn:
    """The child."""
    code = _BUG
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        faulthandler.disable()  # the parent says it
        gc.disable()  # it would copy the parent's memory page by page
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_CPU, CPU_S)
        _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY)
        with os.fdopen(writing, "w") as out:

            def tell(value: Any) -> None:
                out.write(json.dumps(value) + "\n")
                out.flush()

            try:
                work(tell)
                code = 0
            except MemoryError:
                code = _NO_MEMORY
            except Exception as error:  # noqa: BLE001 - the parent raises it
                tell(f"{type(error).__name__}: {error}")
    finally:
        try:
            _exit(code)
        finally:  # whatever a lab's code has done to `os`: a child must not go on as the parent
            os.kill(os.getpid(), signal.SIGKILL)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, hard))
