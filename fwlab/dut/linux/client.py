# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of the agent on a Linux DUT: load rulesets, count packets over busy time."""

from __future__ import annotations

import base64
import contextlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from fwlab.dut.linux.conversation import Conversation
from fwlab.dut.protocol import Collected, Loaded, LoadReport, Window
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import Trial
from fwlab.rulesets.registry import KINDS

T = TypeVar("T")


class LinuxDut:
    """What the agent can be asked for. Use as a context manager; leaving it restores the start state."""

    def __init__(self, ssh: Ssh, devices: list[str]) -> None:
        self._devices = devices
        self._agent = Conversation(ssh)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, trouble: type[BaseException] | None, *_: object) -> None:
        # In trouble it may still be measuring: it breaks off and resets once the conversation is closed.
        if trouble is None:
            with contextlib.suppress(CannotMeasure):
                self.reset()
        self.close()

    def open(self) -> None:
        self._agent.open()

    def close(self) -> None:
        self._agent.close()

    def abandon(self) -> None:
        """Drop the conversation without waiting for the agent: the machine below it is put back, or gone."""
        self._agent.abandon()

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Meanwhile every answer has to come within so many seconds from now; one that does not raises Overdue."""
        return self._agent.within(seconds)

    def facts(self) -> dict[str, Any]:
        """Kernel, command line, clock source, image manifest and open packet sockets of the DUT."""
        return self._agent.ask({"op": "hello"}, timeout=120)

    def reset(self, next_ruleset: list[RulesetFile] | None = None) -> list[str]:
        """Back to the start state; returns what still differs from it, a line each.

        With `next_ruleset` modules may stay that cost its packets nothing.
        """
        request: dict[str, Any] = {"op": "reset"}
        if next_ruleset is not None:
            request["ahead"] = [hook for file in next_ruleset for hook in KINDS[file.kind].hooks(file.text)]
        return self._agent.ask(request, timeout=300)["left"]

    def load(self, files: list[RulesetFile], *, each: bool = False, times: int = 1) -> LoadReport:
        """Load every file by its own tool. Raises Refused with the tool's own words; then nothing is loaded."""
        packed = [
            {
                "name": f.name,
                "kind": f.kind,
                "packed": base64.b64encode(zlib.compress(KINDS[f.kind].sent(f.text).encode(), 6)).decode(),
            }
            for f in files
        ]
        answer = self._agent.ask({"op": "load", "files": packed, "each": each, "times": times}, timeout=1800)
        if "refused" in answer:
            raise Refused(answer["refused"], "correct the file and try again; the DUT is in its start state")
        self._agent.ask({"op": "confirm", "again": True}, timeout=120)
        if not self._agent.ask({"op": "confirm"}, timeout=120)["reached"]:
            raise Refused(
                "the ruleset cuts the DUT off from its management (SSH on the last NIC), so it was taken away again",
                "match the test traffic by address or interface, not everything",
            )
        return LoadReport(
            [[Loaded(f.name, f.kind, s) for f, s in zip(files, run, strict=True)] for run in answer["seconds"]]
        )

    def entries(self) -> int:
        """Addresses in sets and maps, plus rules."""
        return sum(self._agent.ask({"op": "entries"}, timeout=600).values())

    def states(self) -> dict[str, int]:
        """The connection table: words/trial.States without `played`."""
        return self._agent.ask({"op": "states"}, timeout=120)

    @contextlib.contextmanager
    def blackhole(self) -> Iterator[None]:
        """Meanwhile what the DUT would send by its last link is dropped behind all of its rules.

        Unless a ruleset has a queue of its own there: then all goes on as it does.
        """
        last = {"device": self._devices[-1]}
        muted = self._agent.ask({"op": "mute", **last}, timeout=120)["muted"]
        try:
            yield
        finally:
            if muted:
                self._agent.ask({"op": "unmute", **last}, timeout=120)

    def counters(self) -> dict[str, int]:
        return self._agent.ask({"op": "sample", "devices": self._devices}, timeout=120)

    def drain(self, quiet_s: float = 0.1, patience_s: float = 10) -> None:
        """Wait until the first link's receive ring is empty (s of the DUT's clock): a flood leaves it full."""
        request = {"op": "drain", "device": self._devices[0], "quiet_s": quiet_s, "patience_s": patience_s}
        self._agent.ask(request, timeout=300)

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
        self._agent.send(
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

    def collect(self, timeout: float) -> Collected[Trial]:
        """Trials under overload; those in which the DUT was idle at times; those that something disturbed.

        Last, for how many nanoseconds each program and each [kernel thread] ran around the disturbed ones.
        """
        return self._sorted(timeout, self._trial)

    def collect_by_link(self, timeout: float) -> Collected[Window]:
        """The same, with what came in on each link, in their order."""

        def window(found: dict[str, Any]) -> Window:
            trial, counts = self._trial(found), found["counts"]
            return Window(trial.duration_s, trial.busy_s, [counts[f"{d}.rx_packets"] for d in self._devices])

        return self._sorted(timeout, window)

    def received(self) -> list[tuple[int, int]]:
        """For each link, in their order: packets and bytes that came in since boot."""
        counts = self.counters()
        return [(counts[f"{d}.rx_packets"], counts[f"{d}.rx_bytes"]) for d in self._devices]

    def _sorted(self, timeout: float, made: Callable[[dict[str, Any]], T]) -> Collected[T]:
        answer = self._agent.receive(timeout)
        kept, idle, disturbed = ([made(window) for window in answer[kind]] for kind in ("kept", "idle", "disturbed"))
        return Collected(kept, idle, disturbed, answer["ran"])

    def _trial(self, window: dict[str, Any]) -> Trial:
        return Trial(
            duration_s=window["duration_ns"] / 1e9,
            busy_s=max(0.0, (window["duration_ns"] - window["idle_ns"]) / 1e9),
            processed=window["counts"][f"{self._devices[0]}.rx_packets"],
            forwarded=window["counts"][f"{self._devices[-1]}.tx_packets"],
        )

    def prepare_stacks(self, rates: Sequence[int]) -> None:
        """Start perf on the DUT, to sample at all these rates at once (Hz of its clock). Before the packets come."""
        self._agent.ask({"op": "prepare_stacks", "rates": list(rates)}, timeout=300)

    def arm_stacks(self, *, seconds: float, settle_s: float = 0.02, patience_s: float = 30) -> None:
        """Tell the agent to sample for `seconds` as soon as packets come; `collect_stacks` waits until it has."""
        self._agent.send(
            {
                "op": "record_stacks",
                "devices": self._devices,
                "seconds": seconds,
                "settle_s": settle_s,
                "patience_s": patience_s,
            }
        )

    def collect_stacks(self, timeout: float) -> int:
        """Packets that the DUT took in while it was sampled."""
        return self._agent.receive(timeout)["counts"][f"{self._devices[0]}.rx_packets"]

    def read_stacks(self) -> dict[str, int]:
        """Samples by stack: the program, then its functions from the outermost inwards, joined by semicolons.

        Once the packets are gone, for it takes the DUT a while.
        """
        return self._agent.ask({"op": "read_stacks"}, timeout=600)["stacks"]


class LinuxSystem:
    """Linux, as the registry of DUTs knows it."""

    name = "linux"

    def connect(self, ssh: Ssh, devices: list[str]) -> LinuxDut:
        return LinuxDut(ssh, devices)
