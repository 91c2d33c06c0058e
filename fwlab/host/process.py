# SPDX-License-Identifier: GPL-2.0-or-later
"""End a child process."""

import contextlib
import subprocess
from typing import IO, Any, AnyStr


def piped(stream: IO[AnyStr] | None) -> IO[AnyStr]:
    """A process's stream that was opened as a pipe. Its type allows for None, which is a mistake here."""
    if stream is None:
        raise TypeError("the process was started without this pipe")
    return stream


def wait_or_kill(process: subprocess.Popen[Any], timeout_s: float) -> None:
    """Wait for a process that was asked to exit, kill it after `timeout_s`, and close its pipes. Raises nothing."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
