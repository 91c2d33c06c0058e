# SPDX-License-Identifier: GPL-2.0-or-later
"""A root shell on a node that stays open, so that a command does not wait for a login and for sudo each time.

On an emulated node these two take longer than most of the commands.
"""

import contextlib
import json
import shlex
import subprocess
import threading

from fwlab.host.process import wait_or_kill

#: Runs on the node: one command after the other, until its input ends.
_SERVER = """
import json, subprocess, sys
given, answer = sys.stdin.buffer, sys.stdout.buffer
for line in given:
    asked = json.loads(line)
    data = given.read(asked["data"])
    done = subprocess.run(["sh", "-c", asked["command"]], input=data, capture_output=True)
    head = {"status": done.returncode, "out": len(done.stdout), "err": len(done.stderr)}
    answer.write(json.dumps(head).encode() + b"\\n" + done.stdout + done.stderr)
    answer.flush()
"""
#: How long the shell may take to end when its input does (s).
ENDING_S = 2.0
#: The exit status of ssh itself.
LOST = 255


def started(login: list[str], program: str) -> subprocess.Popen[bytes]:
    """A Python program as root on the node, with its input and outputs open. `login`: the words that log in."""
    return subprocess.Popen(
        [*login, f"sudo python3 -S -c {shlex.quote(program)}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


class RootShell:
    """Commands as root on one node, one at a time.

    login  the words of the command that logs in, to which the remote command is added
    """

    def __init__(self, login: list[str]) -> None:
        self._login = login
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = threading.Lock()

    def run(self, command: str, data: bytes, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
        """Run a command. The status is LOST if the connection is; then the command may have run or not.

        Raises TimeoutExpired after `timeout_s` seconds, and the shell is closed then.
        """
        with self._busy:
            process = self._opened()
            late = threading.Event()

            def end() -> None:
                late.set()
                process.kill()

            timer = threading.Timer(timeout_s, end)
            timer.start()
            try:
                done = _exchange(process, command, data)
            except BaseException:  # an answer that nobody read would be taken for that of the next command
                self._end()
                raise
            finally:
                timer.cancel()
            if done is not None:
                return done
            words = self._end()
            if late.is_set():
                raise subprocess.TimeoutExpired(command, timeout_s)
            return subprocess.CompletedProcess(command, LOST, b"", words)

    def close(self) -> None:
        """Close the shell. The next command opens it again."""
        with self._busy:
            self._end()

    def _opened(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        self._process = started(self._login, _SERVER)
        return self._process

    def _end(self) -> bytes:
        """End the process if there is one; returns what ssh said."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stderr is None:
            return b""
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
        said = process.stderr.read()
        wait_or_kill(process, ENDING_S)
        return said


def _exchange(process: subprocess.Popen[bytes], command: str, data: bytes) -> subprocess.CompletedProcess[bytes] | None:
    """Send a command and read its answer; None if the connection ends before."""
    given, answer = process.stdin, process.stdout
    if given is None or answer is None:
        return None
    try:
        given.write(json.dumps({"command": command, "data": len(data)}).encode() + b"\n" + data)
        given.flush()
    except OSError:
        return None
    head = answer.readline()
    try:
        found = json.loads(head)
        out, errors = answer.read(found["out"]), answer.read(found["err"])
    except (ValueError, KeyError, TypeError):
        return None
    whole = len(out) == found["out"] and len(errors) == found["err"]
    return subprocess.CompletedProcess(command, found["status"], out, errors) if whole else None
