# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of the agent on a Linux DUT: load rulesets, count packets over busy time."""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import subprocess
import threading
import zlib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fwlab.outside.ssh import Ssh
from fwlab.words.errors import CannotMeasure, Refused
from fwlab.words.ruleset import RulesetFile
from fwlab.words.trial import Trial

AGENT = "/run/fwlab-agent.py"


@dataclass(frozen=True)
class Loaded:
    """One file's loading time, in seconds of the DUT's clock that it was busy."""

    name: str
    kind: str
    seconds: float


@dataclass(frozen=True)
class LoadReport:
    """`runs`: for each loading of the whole ruleset, what each file took."""

    runs: list[list[Loaded]]


class LinuxDut:
    """A conversation with the agent. Use as a context manager; leaving it restores the start state."""

    def __init__(self, ssh: Ssh, devices: list[str]) -> None:
        self._ssh = ssh
        self._devices = devices
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[bytes] = queue.Queue()

    def __enter__(self) -> LinuxDut:
        source = resources.files("fwlab.outside.dut").joinpath("agent.py").read_bytes()
        self._ssh.run(f"cat > {AGENT}", data=source)
        self._process = self._ssh.open(f"exec python3 -u {AGENT}")
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(CannotMeasure):
            self.reset()
        self.close()

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def hello(self) -> dict[str, Any]:
        """Kernel, command line, clock source, image manifest and open packet sockets of the DUT."""
        return self._ask({"op": "hello"}, timeout=120)

    def reset(self) -> list[str]:
        """Back to the start state; returns the modules that would not go."""
        return self._ask({"op": "reset"}, timeout=300)["left"]

    def load(self, files: list[RulesetFile], *, each: bool = False, times: int = 1) -> LoadReport:
        """Load every file by its own tool. Raises Refused with the tool's own words; then nothing is loaded."""
        packed = [
            {
                "name": f.name,
                "kind": f.kind.value,
                "packed": base64.b64encode(zlib.compress(f.text.encode(), 6)).decode(),
            }
            for f in files
        ]
        answer = self._ask({"op": "load", "files": packed, "each": each, "times": times}, timeout=1800)
        if "refused" in answer:
            raise Refused(answer["refused"], "correct the file and try again; the DUT is in its start state")
        if not self._ask({"op": "confirm"}, timeout=120)["reached"]:
            raise Refused(
                "the ruleset cuts the DUT off from its management (SSH on the last NIC), so it was taken away again",
                "match the test traffic by address or interface, not everything",
            )
        return LoadReport(
            [
                [Loaded(f.name, f.kind.value, s) for f, s in zip(files, run, strict=True)]
                for run in answer["seconds"]
            ]
        )

    def entries(self) -> int:
        """Addresses in sets and maps, plus rules."""
        return sum(self._ask({"op": "entries"}, timeout=600).values())

    def sample(self) -> dict[str, int]:
        return self._ask({"op": "sample", "devices": self._devices}, timeout=120)

    def arm(
        self,
        *,
        windows: int,
        window_s: float,
        packets: int,
        idle_share: float,
        other_share: float,
        most_idle: int,
        settle_s: float = 0.02,
        patience_s: float = 30,
    ) -> None:
        """Tell the agent to measure as soon as packets come; `collect` fetches the trials.

        A trial lasts at least `window_s` seconds of the DUT's clock and `packets` packets. The agent stops early
        when more than `most_idle` trials were idle for more than `idle_share` of their time. A trial in which
        anything but packets took more than `other_share` of the CPU is disturbed and left out.
        """
        self._send(
            {
                "op": "measure",
                "devices": self._devices,
                "windows": windows,
                "window_s": window_s,
                "packets": packets,
                "idle_share": idle_share,
                "other_share": other_share,
                "most_idle": most_idle,
                "settle_s": settle_s,
                "patience_s": patience_s,
            }
        )

    def collect(self, timeout: float) -> tuple[list[Trial], list[Trial], list[Trial]]:
        """Trials under overload; those in which the DUT was idle at times; those that something disturbed."""
        answer = self._receive(timeout)
        return tuple([self._trial(w) for w in answer[kind]] for kind in ("kept", "idle", "disturbed"))

    def _trial(self, window: dict[str, Any]) -> Trial:
        return Trial(
            duration_s=window["duration_ns"] / 1e9,
            busy_s=max(0.0, (window["duration_ns"] - window["idle_ns"]) / 1e9),
            processed=window["counts"][f"{self._devices[0]}.rx_packets"],
            forwarded=window["counts"][f"{self._devices[-1]}.tx_packets"],
        )

    # -- the wire --

    def _listen(self) -> None:
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        self._send(request)
        return self._receive(timeout)

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, AttributeError) as error:
            raise self._ssh.lost() from error

    def _receive(self, timeout: float) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty as error:
            raise CannotMeasure(f"dut: no answer within {timeout:g} s", "fwlab doctor") from error
        if not line:
            self._answers.put(b"")  # the end stays the end: whoever asks next is told at once
            raise self._ssh.lost()
        answer = json.loads(line)
        if "failed" in answer:
            raise CannotMeasure(f"dut: {answer['failed']}", "vagrant reload LAB")
        return answer
