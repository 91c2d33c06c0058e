# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes of this host: run a command for what it prints, and end one that was started."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any, AnyStr

from fwlab.host.environment import libvirt_uri


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


@contextlib.contextmanager
def helper(program: str, *words: object, fds: Sequence[int] = ()) -> Iterator[subprocess.Popen[str]]:
    """Run a Python program of this package in a session of its own while the body runs. Its streams are pipes.

    program  its file; fds: open files that it inherits
    """
    pipe = subprocess.PIPE
    argv = [sys.executable, program, *map(str, words)]
    process = subprocess.Popen(
        argv, pass_fds=fds, start_new_session=True, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        wait_or_kill(process, 10)


class Failed(OSError):
    """A program failed. The text is its name and the last line of what it said."""


def output_of(command: list[str], text: str = "") -> str:
    """What a command prints. `text`: its input. Raises OSError if it fails or is missing."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        raise Failed(f"{command[0]}: {said[-1].strip()}")
    return done.stdout


def virsh(*words: str, text: str = "") -> str:
    """What virsh prints."""
    return output_of(["virsh", "--quiet", "--connect", libvirt_uri(), *words], text)
