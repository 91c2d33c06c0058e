# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's client of an agent: what all DUTs have in common that an agent works on.

An agent answers each request by its operation's name. The operations and their fields are the same on every system.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from fwlab.dut.conversation import AgentProgram, Conversation
from fwlab.dut.protocol import Collected, Window
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import Trial

T = TypeVar("T")


class AgentDut:
    """A DUT with an agent (see fwlab.dut.protocol for its methods). Each system says what its agent is given."""

    def __init__(self, ssh: Ssh, devices: list[str], program: AgentProgram) -> None:
        self._devices = devices
        self._agent = Conversation(ssh, program)

    def _given(self, file: RulesetFile) -> dict[str, str]:
        """A ruleset file as the agent reads it."""
        raise NotImplementedError

    def _reset_request(self, next_ruleset: list[RulesetFile] | None) -> dict[str, Any]:
        """What the agent is told of the ruleset that comes next."""
        return {}

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, trouble: type[BaseException] | None, *_: object) -> None:
        # After an error the agent may still be measuring. It stops and resets once the conversation is closed.
        if trouble is None:
            with contextlib.suppress(CannotMeasure):
                self.reset()
        self.close()

    def open(self) -> None:
        self._agent.open()

    def close(self) -> None:
        self._agent.close()

    def abandon(self) -> None:
        self._agent.abandon()

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        return self._agent.within(seconds)

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = self._agent.ask({"op": "facts"}, timeout=120)["facts"]
        return facts

    def reset(self, next_ruleset: list[RulesetFile] | None = None) -> list[str]:
        answer = self._agent.ask({"op": "reset", **self._reset_request(next_ruleset)}, timeout=300)
        return [f"module {name}" for name in answer["stuck_modules"]] + list(answer["differences"])

    def load(self, files: list[RulesetFile], *, each: bool = False, times: int = 1) -> list[list[float]]:
        given = [self._given(file) for file in files]
        answer = self._agent.ask({"op": "load", "files": given, "each": each, "times": times}, timeout=1800)
        if "refused" in answer:
            raise Refused(answer["refused"], "correct the file and try again; the DUT is in its start state")
        # Two words: the agent undoes the ruleset if either does not arrive, or if we do not hear its first answer.
        self._agent.ask({"op": "confirm", "again": True}, timeout=120)
        if not self._agent.ask({"op": "confirm"}, timeout=120)["reached"]:
            raise Refused(
                "the ruleset cuts the DUT off from its management (SSH on the last NIC), so it was taken away again",
                "match the test traffic by address or interface, not everything",
            )
        seconds: list[list[float]] = answer["seconds"]
        return seconds

    def entries(self) -> int:
        return sum(self._agent.ask({"op": "entries"}, timeout=600)["entries"].values())

    def states(self) -> dict[str, int]:
        states: dict[str, int] = self._agent.ask({"op": "states"}, timeout=120)["states"]
        return states

    @contextlib.contextmanager
    def blackhole(self) -> Iterator[None]:
        last = {"device": self._devices[-1]}
        added = self._agent.ask({"op": "blackhole", **last}, timeout=120)["added"]
        try:
            yield
        finally:
            if added:
                self._agent.ask({"op": "remove_blackhole", **last}, timeout=120)

    def counters(self) -> dict[str, int]:
        answer = self._agent.ask({"op": "counters", "devices": self._devices}, timeout=120)
        counters: dict[str, int] = answer["counters"]
        return counters

    def drain(self, quiet_s: float = 0.1, patience_s: float = 10) -> None:
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
        return self._sorted(timeout, self._trial)

    def collect_by_link(self, timeout: float) -> Collected[Window]:
        def window(found: dict[str, Any]) -> Window:
            trial, counts = self._trial(found), found["counts"]
            return Window(trial.duration_s, trial.busy_s, [counts[f"{d}.rx_packets"] for d in self._devices])

        return self._sorted(timeout, window)

    def received(self) -> list[tuple[int, int]]:
        counts = self.counters()
        return [(counts[f"{d}.rx_packets"], counts[f"{d}.rx_bytes"]) for d in self._devices]

    def _sorted(self, timeout: float, made: Callable[[dict[str, Any]], T]) -> Collected[T]:
        answer = self._agent.receive(timeout)
        valid, unsaturated, perturbed = ([made(window) for window in answer[kind]] for kind in Collected._fields[:3])
        return Collected(valid, unsaturated, perturbed, answer["cpu_ns"])

    def _trial(self, window: dict[str, Any]) -> Trial:
        return Trial(
            duration_s=window["duration_ns"] / 1e9,
            busy_s=max(0.0, (window["duration_ns"] - window["idle_ns"]) / 1e9),
            processed=window["counts"][f"{self._devices[0]}.rx_packets"],
            forwarded=window["counts"][f"{self._devices[-1]}.tx_packets"],
        )

    def prepare_stacks(self, rates: Sequence[int]) -> None:
        self._agent.ask({"op": "prepare_stacks", "rates": list(rates)}, timeout=300)

    def arm_stacks(self, *, seconds: float, settle_s: float = 0.02, patience_s: float = 30) -> None:
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
        return int(self._agent.receive(timeout)["recorded"]["counts"][f"{self._devices[0]}.rx_packets"])

    def read_stacks(self) -> dict[str, int]:
        stacks: dict[str, int] = self._agent.ask({"op": "read_stacks"}, timeout=600)["stacks"]
        return stacks
