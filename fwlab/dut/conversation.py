# SPDX-License-Identifier: GPL-2.0-or-later
"""The conversation with the agent on a DUT: one request a line, one answer a line, both in JSON, over SSH."""

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

from fwlab.host.environment import timeout_scale
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure, DutLost, Hindered, Overdue

#: How long the agent of an interrupted session may take to stop and restore the start state (s).
CLEARING_UP_S = 60


@dataclass(frozen=True)
class AgentProgram:
    """The agent of one operating system, and the shell commands that save and start it there.

    packed  the program
    save    reads the program from standard input; it need not save one that is there already
    start   runs it; the conversation is its standard input and output. It ends once the start state is restored.

    Both wait up to CLEARING_UP_S for the agent of an interrupted session: there is one agent at a time.
    """

    packed: bytes
    save: str
    start: str


class Conversation:
    """Can be opened again after it was closed. If the DUT does not answer, its methods raise CannotMeasure."""

    def __init__(self, ssh: Ssh, agent: Callable[[], AgentProgram]) -> None:
        self._ssh = ssh
        self._agent_made = agent
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._installed = False
        self._number = 0
        self._operation = ""
        self._limit_s = 0.0
        self._deadline: float | None = None

    @cached_property
    def _agent(self) -> AgentProgram:
        return self._agent_made()

    def install(self) -> None:
        """Save the agent on the DUT. Afterwards no agent runs there."""
        self._ssh.run(self._agent.save, data=self._agent.packed, timeout=CLEARING_UP_S + 60)
        self._installed = True

    def open(self) -> None:
        """Start the agent on the DUT. It is saved there first if this conversation has not done so yet."""
        if not self._installed:
            self.install()
        self._process = self._ssh.open(self._agent.start)
        self._answers = queue.Queue()
        threading.Thread(target=_listen, args=(self._process.stdout, self._answers), daemon=True).start()

    def close(self) -> None:
        """End the conversation, and wait until the agent has restored the start state."""
        if self._process is not None:
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
            try:
                self._process.wait(timeout=CLEARING_UP_S * timeout_scale())
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def abandon(self) -> None:
        """End the conversation at once, without waiting for the agent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """In this context all answers must arrive within `seconds` from now. Otherwise they raise Overdue."""
        self._limit_s, self._deadline = seconds, time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = None

    def ask(self, operation: str, timeout: float, **fields: Any) -> dict[str, Any]:
        """The answer to this request, within `timeout` seconds."""
        self.send(operation, **fields)
        return self.receive(timeout)

    def send(self, operation: str, **fields: Any) -> None:
        """Send a request and wait for nothing. Raises CannotMeasure if the connection is lost."""
        self._number += 1
        self._operation = operation
        line = json.dumps({"op": operation, **fields, "number": self._number}).encode() + b"\n"
        if self._process is None or self._process.stdin is None:
            raise self._ssh.lost()
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._ssh.lost() from error

    def receive(self, timeout: float) -> dict[str, Any]:
        """The answer to the last request. Answers to earlier requests, which nobody waited for, are skipped.

        `timeout` is extended on a slow host (see timeout_scale).
        """
        timeout *= timeout_scale()
        answer: dict[str, Any] = {"number": None}
        while answer.pop("number", None) != self._number:
            line = self._line(timeout)
            if not line:
                self._answers.put(b"")  # the end stays the end: the next request fails at once
                raise self._ssh.lost()
            answer = json.loads(line)
        operation = answer.pop("op", None)
        if "failed" in answer:
            # Not DutLost: an agent that answers lives, and what it lacks, such as packets, may be anybody's fault.
            raise Hindered(f"dut: {answer['failed']}", "vagrant reload LAB")
        if operation != self._operation:
            raise CannotMeasure(f"dut: the answer to {self._operation} was one to {operation}", "vagrant reload LAB")
        return answer

    def _line(self, timeout: float) -> bytes:
        left = timeout if self._deadline is None else self._deadline - time.monotonic()
        try:
            return self._answers.get(timeout=max(0.0, min(timeout, left)))
        except queue.Empty as error:
            if left < timeout:
                message = f"dut: it was not measured within {self._limit_s:g} s"
                raise Overdue(message, "try the ruleset by itself: fwlab check LAB EXERCISE") from error
            raise DutLost(f"dut: no answer within {timeout:g} s", "fwlab doctor") from error


def _listen(stdout: IO[bytes] | None, answers: queue.Queue[bytes]) -> None:
    for line in stdout or ():
        answers.put(line)
    answers.put(b"")
