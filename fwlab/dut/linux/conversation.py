# SPDX-License-Identifier: GPL-2.0-or-later
"""The conversation with the agent on a Linux DUT: one request a line, one answer a line, both JSON, over SSH."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

from fwlab.dut.linux.zipapp import agent_parcel
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure, Overdue

AGENT = "/run/fwlab-agent.pyz"
#: The agent of a session that was interrupted needs so long at most to end what it does and clear up (s).
CLEARING_UP_S = 60


class Conversation:
    """Opened and closed as often as the DUT is put back. What the DUT does not answer raises CannotMeasure."""

    def __init__(self, ssh: Ssh) -> None:
        self._ssh = ssh
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._number = 0
        self._limit_s, self._deadline = 0.0, None

    def open(self) -> None:
        """Send the agent to the DUT and start it there."""
        # One at a time: that of a session which was interrupted may still be clearing up.
        alone = f"flock -o -w {CLEARING_UP_S} {AGENT}.lock"
        self._ssh.run(f"{alone} sh -c 'cat > {AGENT}'", data=agent_parcel(), timeout=CLEARING_UP_S + 60)
        self._process = self._ssh.open(f"exec {alone} python3 -u {AGENT}")
        self._answers = queue.Queue()
        threading.Thread(target=_listen, args=(self._process, self._answers), daemon=True).start()

    def close(self) -> None:
        """Take leave, and wait until the agent has cleared up."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(timeout=CLEARING_UP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def abandon(self) -> None:
        """End it at once, without a word to the agent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Meanwhile every answer has to come within so many seconds from now; one that does not raises Overdue."""
        self._limit_s, self._deadline = seconds, time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = None

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        self.send(request)
        return self.receive(timeout)

    def send(self, request: dict[str, Any]) -> None:
        self._number += 1
        request["number"] = self._number
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, AttributeError) as error:
            raise self._ssh.lost() from error

    def receive(self, timeout: float) -> dict[str, Any]:
        """The answer to the last request; one to an earlier request, which nobody waited for, is passed over."""
        answer = {"number": None}
        while answer.pop("number") != self._number:
            line = self._line(timeout)
            if not line:
                self._answers.put(b"")  # the end stays the end: whoever asks next is told at once
                raise self._ssh.lost()
            answer = json.loads(line)
        if "failed" in answer:
            raise CannotMeasure(f"dut: {answer['failed']}", "vagrant reload LAB")
        return answer

    def _line(self, timeout: float) -> bytes:
        left = timeout if self._deadline is None else self._deadline - time.monotonic()
        try:
            return self._answers.get(timeout=max(0.0, min(timeout, left)))
        except queue.Empty as error:
            if left < timeout:
                message = f"dut: it was not measured within {self._limit_s:g} s"
                raise Overdue(message, "try the ruleset by itself: fwlab check LAB EXERCISE") from error
            raise CannotMeasure(f"dut: no answer within {timeout:g} s", "fwlab doctor") from error


def _listen(process: subprocess.Popen[bytes], answers: queue.Queue[bytes]) -> None:
    for line in process.stdout:
        answers.put(line)
    answers.put(b"")
