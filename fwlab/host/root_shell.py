# SPDX-License-Identifier: GPL-2.0-or-later
"""A root shell on a node that stays open, so that a command does not wait for a login and for sudo each time.

On an emulated node these two take longer than most of the commands.
"""

import contextlib
import shlex
import subprocess
import threading

from fwlab.host.conversation import Conversation, Ended

#: Runs on the node: one command at a time. `start` starts it and is answered when it ends; `input` is its whole input.
_SERVER = """
import contextlib, json, subprocess, sys, threading
requests, answers = sys.stdin.buffer, sys.stdout.buffer
def report(number, process):
    out, errors = process.communicate()
    head = {"number": number, "status": process.returncode, "out": len(out), "bytes": len(out) + len(errors)}
    answers.write(json.dumps(head).encode() + b"\\n" + out + errors)
    answers.flush()
given = None
for line in requests:
    request = json.loads(line)
    data = requests.read(request.get("bytes", 0))
    if request["op"] == "start":
        pipe = subprocess.PIPE
        process = subprocess.Popen(["sh", "-c", request["command"]], stdin=pipe, stdout=pipe, stderr=pipe)
        given, process.stdin = process.stdin, None
        threading.Thread(target=report, args=(request["number"], process)).start()
    else:
        with contextlib.suppress(OSError):
            given.write(data)
        with contextlib.suppress(OSError):
            given.close()
if given is not None:
    with contextlib.suppress(OSError):
        given.close()
"""
#: How long the shell may take to end when its input does (s).
ENDING_S = 2.0
#: The exit status of ssh itself.
LOST = 255


class Program:
    """A command that runs on the node, with the methods of subprocess.Popen that its user needs."""

    def __init__(self, conversation: Conversation, command: str) -> None:
        self._conversation = conversation
        self._ended: tuple[int, bytes, bytes] | None = None
        self._number = 0
        with contextlib.suppress(Ended):  # a lost connection shows in what is read
            self._number = conversation.send("start", command=command)

    @property
    def returncode(self) -> int | None:
        """The command's exit status; LOST if the connection was lost; None until either is known."""
        return None if self._ended is None else self._ended[0]

    @property
    def finished(self) -> bool:
        """Whether it has ended, and its shell can start another."""
        return self.returncode not in (None, LOST) and self._conversation.goes_on

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        return self._result(timeout)[0]

    def communicate(self, given: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Give the command its input, which ends with it, and wait for its output and errors."""
        if self._ended is None:
            with contextlib.suppress(Ended):
                self._conversation.send("input", given)
        return self._result(timeout)[1:]

    def kill(self) -> None:
        """End its shell. The command's input ends with it."""
        self._conversation.kill()

    def _result(self, timeout: float | None) -> tuple[int, bytes, bytes]:
        if self._ended is None:
            try:
                head, data = self._conversation.receive(self._number, timeout)
                self._ended = head["status"], data[: head["out"]], data[head["out"] :]
            except Ended:
                self._ended = LOST, b"", self._conversation.last_words(ENDING_S)
            except TimeoutError as late:
                raise subprocess.TimeoutExpired("a command on the node", timeout or 0.0) from late
        return self._ended


class RootShell:
    """Commands as root on one node, one at a time.

    login  the words of the command that logs in, to which the remote command is added
    """

    def __init__(self, login: list[str]) -> None:
        self._login = login
        self._conversation: Conversation | None = None
        self._last: Program | None = None
        self._busy = threading.Lock()

    def start(self, command: str) -> Program:
        """Start a command. An earlier one that has not ended loses its shell, and so its input."""
        if self._conversation is None or self._last is None or not self._last.finished:
            self._end()
            self._conversation = Conversation(_opened(self._login))
        self._last = Program(self._conversation, command)
        return self._last

    def run(self, command: str, data: bytes, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
        """Run a command. The status is LOST if the connection is; then the command may have run or not.

        Raises TimeoutExpired after `timeout_s` seconds, and the shell is closed then.
        """
        with self._busy:
            program = self.start(command)
            late = threading.Event()

            def end() -> None:
                late.set()
                program.kill()

            timer = threading.Timer(timeout_s, end)  # a connection that hangs takes no input either
            timer.start()
            try:
                out, errors = program.communicate(data)
            finally:
                timer.cancel()
                if not program.finished:  # an unread answer would be taken for that of the next command
                    self._end()
            if late.is_set() and program.returncode == LOST:
                raise subprocess.TimeoutExpired(command, timeout_s)
            return subprocess.CompletedProcess(command, program.wait(), out, errors)

    def close(self) -> None:
        """Close the shell. The next command opens it again."""
        with self._busy:
            self._end()

    def _end(self) -> None:
        conversation, self._conversation, last, self._last = self._conversation, None, self._last, None
        if conversation is None:
            return
        if last is not None and last.returncode is None:
            conversation.kill()
        conversation.close(ENDING_S)


def _opened(login: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*login, f"sudo python3 -S -c {shlex.quote(_SERVER)}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
