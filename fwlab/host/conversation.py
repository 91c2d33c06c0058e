# SPDX-License-Identifier: GPL-2.0-or-later
"""The conversation with a program on a node, over its standard input and output: how the host talks to every helper.

A request is a line, and so is its answer: a JSON object each. A request has an operation (`op`) and a `number`, which
the answer repeats. Where `bytes` is not 0, that many bytes follow the line.
"""

import contextlib
import json
import queue
import subprocess
import threading
from typing import IO, Any

from fwlab.host.process import piped

#: An answer, and the bytes that follow it.
Message = tuple[dict[str, Any], bytes]


class Ended(Exception):
    """The program has ended, or the connection to it is lost."""


class Conversation:
    """One conversation. It lasts as long as `process`, whose three streams are pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0
        self._killed = False
        self._answers: queue.Queue[Message | None] = queue.Queue()
        threading.Thread(target=_listen, args=(piped(process.stdout), self._answers), daemon=True).start()

    @property
    def goes_on(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def send(self, operation: str, data: bytes = b"", **fields: Any) -> int:
        """Send a request and wait for nothing. Returns its number. Raises Ended."""
        self._number += 1
        request = {"op": operation, **fields, "number": self._number, **({"bytes": len(data)} if data else {})}
        stream = piped(self._process.stdin)
        try:
            stream.write(json.dumps(request).encode() + b"\n" + data)
            stream.flush()
        except (OSError, ValueError) as error:
            raise Ended from error
        return self._number

    def receive(self, number: int, timeout_s: float | None) -> Message:
        """The answer to this request. Answers to requests that timed out are skipped.

        Raises Ended, or TimeoutError if nothing arrives within `timeout_s` seconds.
        """
        while True:
            try:
                found = self._answers.get(timeout=timeout_s)
            except queue.Empty as error:
                raise TimeoutError from error
            if found is None:
                self._answers.put(None)  # the end stays the end: the next request fails at once
                raise Ended
            if found[0].pop("number", None) == number:
                return found

    def close(self, timeout_s: float) -> None:
        """Close the program's input and wait for its end; kill what connects to it after `timeout_s` seconds."""
        with contextlib.suppress(OSError):
            piped(self._process.stdin).close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        piped(self._process.stderr).close()

    def last_words(self, timeout_s: float) -> bytes:
        """What the process wrote to standard error, once the conversation has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
            if not self._killed:  # a shared connection may hold the streams of a killed one for longer
                return piped(self._process.stderr).read()
        return b""

    def kill(self) -> None:
        """End the connection at once, for those who wait for an answer, too."""
        self._killed = True
        self._answers.put(None)
        self._process.kill()
        self._process.wait()


def _listen(stream: IO[bytes], answers: queue.Queue[Message | None]) -> None:
    """Put every answer into the queue, and None at the end. What is no message ends the conversation, too."""
    with stream, contextlib.suppress(OSError, ValueError):
        for line in stream:
            head = json.loads(line)
            length = head.pop("bytes", 0)
            data = stream.read(length)
            if len(data) < length:
                break
            answers.put((head, data))
    answers.put(None)
