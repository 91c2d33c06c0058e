# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's client of an agent: what all DUTs have in common that an agent works on.

An agent answers each request by its operation's name. The operations and their fields are the same on every system.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar, Unpack

from fwlab.dut.conversation import AgentProgram, Conversation
from fwlab.dut.core_functions import PROGRAMS, by_function
from fwlab.dut.packet_stacks import of_packets
from fwlab.dut.protocol import Collected, CoreModel, Drained, KernelMemory, TrialTerms, Window
from fwlab.dut.refused_line import with_line
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import Counts, Trial

T = TypeVar("T")

#: Seconds of the DUT's clock under load before the first trial, and to wait for the first packet. On a busy
#: host, opening the first connections can take more than half a minute.
SETTLE_S, PATIENCE_S = 0.02, 60


class AgentDut(Conversation, ABC):
    """A DUT with an agent (see fwlab.dut.protocol for its methods). Each system says what its agent is given.

    serving, not_of_packets  how the system's call stacks tell what packets cause: see packet_stacks.py
    marks  whether the agent can mark trials for a model of a core
    can_be_paced  whether the agent can keep the CPU from sleeping
    """

    serving: tuple[str, ...]
    not_of_packets: tuple[str, ...]
    marks: bool = False
    can_be_paced: bool = False

    def __init__(self, ssh: Ssh, devices: list[str], program: Callable[[], AgentProgram]) -> None:
        super().__init__(ssh, program)
        self._devices = devices
        self._model: CoreModel | None = None

    def watched_by(self, model: CoreModel) -> None:
        if not self.marks:
            raise CannotMeasure("this DUT's agent marks no trials for a model", "leave --model out")
        self._model = model

    @abstractmethod
    def _given(self, file: RulesetFile) -> dict[str, str]:
        """A ruleset file as the agent reads it."""

    def _reset_request(self, next_ruleset: list[RulesetFile] | None) -> dict[str, Any]:
        """The part of a reset request that describes the next ruleset."""
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

    def facts(self) -> dict[str, Any]:
        return dict(self.ask("facts", timeout=120)["facts"])

    def reset(self, next_ruleset: list[RulesetFile] | None = None) -> list[str]:
        answer = self.ask("reset", timeout=300, **self._reset_request(next_ruleset))
        return [f"module {name}" for name in answer["stuck_modules"]] + list(answer["differences"])

    def load(
        self, files: list[RulesetFile], *, each: bool = False, times: int = 1, timed: bool = True
    ) -> list[list[float]]:
        given = [self._given(file) for file in files]
        answer = self.ask("load", timeout=1800, files=given, each=each, times=times, timed=timed)
        if "refused" in answer:
            raise Refused(
                with_line(answer["refused"], files), "correct the file and try again; the DUT is in its start state"
            )
        # Two words: the agent undoes the ruleset if either does not arrive, or if we do not hear its first answer.
        self.ask("confirm", timeout=120, again=True)
        if not self.ask("confirm", timeout=120)["reached"]:
            raise Refused(
                "the ruleset cuts the DUT off from its management (SSH on the last NIC), so it was taken away again",
                "match the test traffic by address or interface, not everything",
            )
        return list(answer["seconds"])

    def must_admit_logins(self) -> None:
        if not self._ssh.greets():
            raise Refused(
                "the ruleset lets no new login in (SSH on the last NIC)",
                "match the test traffic by address or interface, not everything",
            )

    def entries(self) -> int:
        return sum(self.ask("entries", timeout=600)["entries"].values())

    def states(self) -> dict[str, int]:
        return dict(self.ask("states", timeout=120)["states"])

    def forget_states(self) -> bool:
        return False

    def unload(self) -> None:
        self.ask("unload", timeout=300)

    def memory(self) -> KernelMemory:
        answer = self.ask("memory", timeout=300)
        return KernelMemory(answer["bytes"], answer["settled"])

    @contextlib.contextmanager
    def blackhole(self) -> Iterator[None]:
        last = self._devices[-1]
        added = self.ask("blackhole", timeout=120, device=last)["added"]
        try:
            yield
        finally:
            if added:
                self.ask("remove_blackhole", timeout=120, device=last)

    def counters(self) -> dict[str, int]:
        return dict(self.ask("counters", timeout=120, devices=self._devices)["counters"])

    def drain(self) -> Drained:
        answer = self.ask("drain", timeout=300, devices=self._devices, quiet_s=0.1, patience_s=10)
        return Drained(answer["counters"], answer.get("queue_drops", 0))

    @contextlib.contextmanager
    def never_idle(self) -> Iterator[None]:
        self.ask("never_idle", timeout=120)
        try:
            yield
        finally:
            with contextlib.suppress(CannotMeasure):
                self.ask("idle_again", timeout=120)

    def arm(self, **trials: Unpack[TrialTerms]) -> None:
        marked: dict[str, Any] = {}
        if self._model is not None:
            self._model.begin()
            marked["marked"] = True
        usual = {"settle_s": SETTLE_S, "patience_s": PATIENCE_S}
        self.send("measure", devices=self._devices, **{**usual, **trials, **marked})

    def collect(self, timeout: float) -> Collected[Trial]:
        return self._sorted(timeout, self._trial)

    def collect_by_link(self, timeout: float) -> Collected[Window]:
        def window(found: dict[str, Any]) -> Window:
            trial, counts = self._trial(found), found["counts"]
            packets = [counts[f"{d}.rx_packets"] for d in self._devices]
            return Window(trial.duration_s, trial.busy_s, packets, trial.modelled)

        return self._sorted(timeout, window)

    def modelled_functions(self) -> dict[str, Counts]:
        if self._model is None:
            raise CannotMeasure("no model of a core watches the DUT", "fwlab profile LAB CASE --model CORE")
        places = self._model.places()
        addresses = sorted(address for address in places if address)
        names = self.ask("functions", timeout=600, addresses=addresses)["functions"]
        return by_function(places, {PROGRAMS: "[programs]", **dict(zip(addresses, names, strict=True))})

    def received(self) -> list[tuple[int, int]]:
        counts = self.counters()
        return [(counts[f"{d}.rx_packets"], counts[f"{d}.rx_bytes"]) for d in self._devices]

    def _sorted(self, timeout: float, made: Callable[[dict[str, Any]], T]) -> Collected[T]:
        answer = self.receive(timeout)
        if self._model is not None:
            self._add_modelled(answer, self._model.windows())
        valid, unsaturated, perturbed = ([made(window) for window in answer[kind]] for kind in Collected._fields[:3])
        return Collected(valid, unsaturated, perturbed, answer["cpu_ns"])

    @staticmethod
    def _add_modelled(answer: dict[str, Any], modelled: Sequence[Counts]) -> None:
        """Give each trial of the answer what the model counted in it. Raises CannotMeasure if their numbers differ."""
        trials = [trial for kind in Collected._fields[:3] for trial in answer[kind]]
        if len(trials) != len(modelled):
            raise CannotMeasure(f"the DUT made {len(trials)} trials, the model saw {len(modelled)}", "run it again")
        for trial in trials:
            trial["modelled"] = modelled[trial["number"]]

    def _trial(self, window: dict[str, Any]) -> Trial:
        return Trial(
            duration_s=window["duration_ns"] / 1e9,
            busy_s=max(0.0, (window["duration_ns"] - window["idle_ns"]) / 1e9),
            processed=window["counts"][f"{self._devices[0]}.rx_packets"],
            forwarded=window["counts"][f"{self._devices[-1]}.tx_packets"],
            instructions=window.get("instructions"),
            modelled=window.get("modelled"),
        )

    def prepare_stacks(self, rates: Sequence[int]) -> None:
        self.ask("prepare_stacks", timeout=300, rates=list(rates))

    def arm_stacks(self, *, seconds: float) -> None:
        timing = {"seconds": seconds, "settle_s": SETTLE_S, "patience_s": PATIENCE_S}
        self.send("record_stacks", devices=self._devices, **timing)

    def collect_stacks(self, timeout: float) -> int:
        return int(self.receive(timeout)["recorded"]["counts"][f"{self._devices[0]}.rx_packets"])

    def read_stacks(self) -> dict[str, int]:
        return of_packets(self.ask("read_stacks", timeout=600)["stacks"], self.serving, self.not_of_packets)
