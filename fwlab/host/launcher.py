# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that run for a while on a node, as root, started by a helper that stays there.

A login and sudo for each would take longer than many a run on an emulated node.
"""

import contextlib
import json
import queue
import subprocess
import threading
from typing import IO

from fwlab.host.process import piped, wait_or_kill
from fwlab.host.root_shell import ENDING_S, LOST, started

#: Runs on the node: one program at a time. A line starts one, or gives the running one its input, which then ends.
_SERVER = """
import contextlib, json, subprocess, sys, threading
answer = sys.stdout.buffer
def report(process):
    out, errors = process.communicate()
    head = {"status": process.returncode, "out": len(out), "err": len(errors)}
    answer.write(json.dumps(head).encode() + b"\\n" + out + errors)
    answer.flush()
given = None
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if "command" in asked:
        pipe = subprocess.PIPE
        process = subprocess.Popen(["sh", "-c", asked["command"]], stdin=pipe, stdout=pipe, stderr=pipe)
        given, process.stdin = process.stdin, None
        threading.Thread(target=report, args=(process,)).start()
    else:
        with contextlib.suppress(OSError):
            given.write(asked["input"].encode())
            given.close()
if given is not None:
    with contextlib.suppress(OSError):
        given.close()
"""


class Launched:
    """A program on the node, with the methods of subprocess.Popen that its user needs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._done: queue.Queue[tuple[int, bytes, bytes]] = queue.Queue()
        self._ended: tuple[int, bytes, bytes] | None = None
        threading.Thread(target=self._listen, args=(piped(process.stdout), piped(process.stderr)), daemon=True).start()

    @property
    def returncode(self) -> int | None:
        """The program's exit status; LOST if the connection was lost; None until either is known."""
        return None if self._ended is None else self._ended[0]

    @property
    def finished(self) -> bool:
        """Whether it has ended, and its helper can start another program."""
        return self._ended is not None and self._ended[0] != LOST and self._process.poll() is None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if self._ended is None:
            try:
                self._ended = self._done.get(timeout=timeout)
            except queue.Empty as late:
                raise subprocess.TimeoutExpired("a program on the node", timeout or 0.0) from late
        return self._ended[0]

    def communicate(self, given: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Give the program its input, which ends with it, and wait for its output and errors."""
        if self._ended is None:
            _send(self._process, {"input": given.decode()})
        self.wait(timeout)
        return (b"", b"") if self._ended is None else self._ended[1:]

    def kill(self) -> None:
        """End the helper. The program's input ends with it."""
        self._process.kill()

    def _listen(self, answer: IO[bytes], errors: IO[bytes]) -> None:
        try:
            head = json.loads(answer.readline())
            out, said = answer.read(head["out"]), answer.read(head["err"])
            whole = (len(out), len(said)) == (head["out"], head["err"])
        except (OSError, ValueError, KeyError, TypeError):
            whole = False
        if whole:
            self._done.put((head["status"], out, said))
            return
        said = b""
        with contextlib.suppress(OSError, ValueError):
            said = errors.read()
        self._done.put((LOST, b"", said))


class Launcher:
    """Starts programs as root on one node, one at a time.

    login  the words of the command that logs in, to which the remote command is added
    """

    def __init__(self, login: list[str]) -> None:
        self._login = login
        self._process: subprocess.Popen[bytes] | None = None
        self._last: Launched | None = None

    def start(self, command: str) -> Launched:
        """Start a shell command. An earlier program that has not ended loses its helper, and so its input."""
        if self._process is None or self._last is None or not self._last.finished:
            self.close()
            self._process = started(self._login, _SERVER)
        self._last = Launched(self._process)
        _send(self._process, {"command": command})
        return self._last

    def close(self) -> None:
        """End the helper. The next program starts another."""
        process, self._process, last, self._last = self._process, None, self._last, None
        if process is None:
            return
        if last is not None and last.returncode is None:
            process.kill()
        with contextlib.suppress(OSError):
            piped(process.stdin).close()
        wait_or_kill(process, ENDING_S)


def _send(process: subprocess.Popen[bytes], line: dict[str, str]) -> None:
    with contextlib.suppress(OSError):  # a lost connection shows in what is read
        stream = piped(process.stdin)
        stream.write(json.dumps(line).encode() + b"\n")
        stream.flush()
