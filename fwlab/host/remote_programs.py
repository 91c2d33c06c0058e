# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs as root on a node, started by a helper that stays there: the one protocol over SSH of fwlab/host.

On an emulated node a login and sudo for each program would take longer than many a program runs.

A helper runs one program at a time. It reads lines of JSON: {"command": TEXT} starts a shell command; {"input": N},
with N bytes behind it, is all that the command reads. Once the command has ended, it answers with a line {"status": S,
"out": N, "err": M}, and behind it N bytes of output and M bytes of errors. Where its own input ends, so does the
command's.
"""

import contextlib
import json
import queue
import shlex
import subprocess
import threading
from typing import IO

from fwlab.host.process import piped, wait_or_kill

_HELPER = """
import contextlib, json, subprocess, sys, threading
asked, answer = sys.stdin.buffer, sys.stdout.buffer
def report(process):
    out, errors = process.communicate()
    head = {"status": process.returncode, "out": len(out), "err": len(errors)}
    answer.write(json.dumps(head).encode() + b"\\n" + out + errors)
    answer.flush()
def give(data):
    with contextlib.suppress(OSError):
        given.write(data)
    with contextlib.suppress(OSError):
        given.close()
given = None
for line in asked:
    words = json.loads(line)
    if "command" in words:
        pipe = subprocess.PIPE
        process = subprocess.Popen(["sh", "-c", words["command"]], stdin=pipe, stdout=pipe, stderr=pipe)
        given, process.stdin = process.stdin, None
        threading.Thread(target=report, args=(process,)).start()
    else:
        give(asked.read(words["input"]))
if given is not None:
    give(b"")
"""
#: How long the helper may take to end when its input does (s).
ENDING_S = 2.0
#: The status of a program whose connection was lost; it may have run or not. It is the exit status of ssh itself.
LOST = 255


class RemoteProgram:
    """A program on the node, with the methods of subprocess.Popen that its users need."""

    def __init__(self, helper: subprocess.Popen[bytes], command: str) -> None:
        self._helper = helper
        self._done: queue.Queue[tuple[int, bytes, bytes]] = queue.Queue()
        self._ended: tuple[int, bytes, bytes] | None = None
        threading.Thread(target=self._listen, args=(piped(helper.stdout), piped(helper.stderr)), daemon=True).start()
        self._send({"command": command})

    @property
    def returncode(self) -> int | None:
        """The program's exit status; LOST if the connection was lost; None until either is known."""
        return None if self._ended is None else self._ended[0]

    @property
    def finished(self) -> bool:
        """Whether it has ended, and its helper can start another program."""
        return self._ended is not None and self._ended[0] != LOST and self._helper.poll() is None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if self._ended is None:
            try:
                self._ended = self._done.get(timeout=timeout)
            except queue.Empty as late:
                raise subprocess.TimeoutExpired("a program on the node", timeout or 0.0) from late
        return self._ended[0]

    def communicate(self, given: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Give the program its whole input, and wait for its output and errors; ssh's own errors if it is LOST."""
        if self._ended is None:
            self._send({"input": len(given)}, given)
        self.wait(timeout)
        return (b"", b"") if self._ended is None else self._ended[1:]

    def kill(self) -> None:
        """End the helper. The program's input ends with it."""
        self._helper.kill()

    def _send(self, head: dict[str, object], data: bytes = b"") -> None:
        with contextlib.suppress(OSError):  # a lost connection shows in what is read
            stream = piped(self._helper.stdin)
            stream.write(json.dumps(head).encode() + b"\n" + data)
            stream.flush()

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


class RemotePrograms:
    """Starts programs as root on one node, one at a time.

    login  the words of the command that logs in, to which the remote command is added
    """

    def __init__(self, login: list[str]) -> None:
        self._login = login
        self._helper: subprocess.Popen[bytes] | None = None
        self._last: RemoteProgram | None = None
        self._busy = threading.Lock()

    def start(self, command: str) -> RemoteProgram:
        """Start a shell command. An earlier program that has not ended loses its helper, and so its input."""
        if self._helper is None or self._last is None or not self._last.finished:
            self.close()
            self._helper = subprocess.Popen(
                [*self._login, f"sudo python3 -S -c {shlex.quote(_HELPER)}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        self._last = RemoteProgram(self._helper, command)
        return self._last

    def run(self, command: str, data: bytes, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
        """Run a shell command to its end; threads wait for each other.

        Raises TimeoutExpired after `timeout_s` seconds. Whatever interrupts it ends the helper: an answer that nobody
        read would be taken for that of the next command.
        """
        with self._busy:
            program = self.start(command)
            late = threading.Event()

            def end() -> None:
                late.set()
                program.kill()

            timer = threading.Timer(timeout_s, end)  # sending `data` may block, too
            timer.start()
            try:
                out, errors = program.communicate(data)
            except BaseException:
                self.close()
                raise
            finally:
                timer.cancel()
            if late.is_set() and not program.finished:
                raise subprocess.TimeoutExpired(command, timeout_s)
            return subprocess.CompletedProcess(command, program.wait(), out, errors)

    def close(self) -> None:
        """End the helper. The next program starts another."""
        helper, self._helper, last, self._last = self._helper, None, self._last, None
        if helper is None:
            return
        if last is not None and last.returncode is None:
            helper.kill()
        with contextlib.suppress(OSError):
            piped(helper.stdin).close()
        wait_or_kill(helper, ENDING_S)
