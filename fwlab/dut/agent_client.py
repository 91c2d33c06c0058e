# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's client of an agent: what all DUTs have in common that an agent works on.

The operations and their answers are the same on every system (agent_protocol.py).
"""

import contextlib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack

from fwlab.dut.agent_protocol import (
    POLICY,
    Blackhole,
    Confirmed,
    Counters,
    Done,
    Entries,
    Facts,
    Functions,
    Loaded,
    Recorded,
    Reset,
    Stacks,
    States,
    TableStates,
    TrialCounts,
    Trials,
    TrialTerms,
)
from fwlab.dut.conversation import AgentConversation, AgentProgram
from fwlab.dut.protocol import Collected, CoreModel, Drained, Window
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import Counts, FiveTuple, Trial

T = TypeVar("T")

#: How a measurement begins: packets that must arrive before traffic counts as begun (one NAPI poll), seconds of the
#: DUT's clock to wait for them, and seconds under load before the first trial. On a busy host, opening the first
#: connections can take more than half a minute.
BEGINNING = {"begun": 64, "patience_s": 60, "settle_s": 0.02}

MATCH_LESS = "match the test traffic by address or interface, not everything"


class AgentDut(AgentConversation, ABC):
    """A DUT with an agent (see fwlab.dut.protocol for its methods). Each system says what its agent is given.

    serving, not_of_packets  how to find in the system's call stacks what packets cause: see profile.py
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
        return dict(self.ask("facts", Facts, timeout=120)["facts"])

    def reset(self, next_ruleset: list[RulesetFile] | None = None) -> list[str]:
        answer = self.ask("reset", Reset, timeout=300, **self._reset_request(next_ruleset))
        return [f"module {name}" for name in answer["stuck_modules"]] + answer["differences"]

    def load(
        self, files: list[RulesetFile], *, each: bool = False, times: int = 1, timed: bool = True
    ) -> list[list[float]]:
        given = [self._given(file) for file in files]
        answer = self.ask("load", Loaded, timeout=1800, files=given, each=each, times=times, timed=timed)
        if "refused" in answer:
            hint = "correct the file and try again; the DUT is in its start state"
            raise Refused(with_line(answer["refused"], files), hint)
        # Two words: the agent undoes the ruleset if either does not arrive, or if we do not hear its first answer.
        self.ask("confirm", Confirmed, timeout=120, again=True)
        if not self.ask("confirm", Confirmed, timeout=120)["reached"]:
            message = "the ruleset blocks the DUT's management (SSH on the last NIC), so it was removed"
            raise Refused(message, MATCH_LESS)
        return answer["seconds"]

    def must_admit_logins(self) -> None:
        if not self._ssh.greets():
            raise Refused("the ruleset blocks new logins (SSH on the last NIC)", MATCH_LESS)

    def entries(self) -> int:
        return sum(self.ask("entries", Entries, timeout=600)["entries"].values())

    def states(self) -> TableStates:
        return self.ask("states", States, timeout=120)["states"]

    def forget_states(self) -> bool:
        return False

    def count_flows(self) -> bool:
        return False

    def flows(self) -> dict[FiveTuple, int]:
        return {}

    def unload(self) -> None:
        self.ask("unload", Done, timeout=300)

    @contextlib.contextmanager
    def blackhole(self) -> Iterator[None]:
        last = self._devices[-1]
        added = self.ask("blackhole", Blackhole, timeout=120, device=last)["added"]
        try:
            yield
        finally:
            if added:
                self.ask("remove_blackhole", Done, timeout=120, device=last)

    def counters(self) -> dict[str, int]:
        return self.ask("counters", Counters, timeout=120, devices=self._devices)["counters"]

    def drain(self) -> Drained:
        answer = self.ask("drain", Counters, timeout=300, devices=self._devices, quiet_s=0.1, patience_s=10)
        return Drained(answer["counters"], answer.get("queue_drops", 0))

    @contextlib.contextmanager
    def never_idle(self) -> Iterator[None]:
        self.ask("never_idle", Done, timeout=120)
        try:
            yield
        finally:
            with contextlib.suppress(CannotMeasure):
                self.ask("idle_again", Done, timeout=120)

    def arm(self, **trials: Unpack[TrialTerms]) -> None:
        marked: dict[str, Any] = {}
        if self._model is not None:
            self._model.begin()
            marked["marked"] = True
        self.send("measure", devices=self._devices, **{**BEGINNING, **POLICY, **trials, **marked})

    def collect(self, timeout: float) -> Collected[Trial]:
        return self._collected(timeout, self._trial)

    def collect_by_link(self, timeout: float) -> Collected[Window]:
        def window(found: TrialCounts, modelled: Counts | None) -> Window:
            trial, counts = self._trial(found, modelled), found["counts"]
            packets = [counts[f"{d}.rx_packets"] for d in self._devices]
            return Window(trial.duration_s, trial.busy_s, packets, trial.modelled)

        return self._collected(timeout, window)

    def modelled_functions(self) -> dict[str, Counts]:
        if self._model is None:
            raise CannotMeasure("no model of a core watches the DUT", "fwlab profile LAB CASE --model CORE")
        places = self._model.places()
        addresses = sorted(address for address in places if address != PROGRAMS)
        functions = self.ask("functions", Functions, timeout=600, addresses=addresses)["functions"]
        names = {PROGRAMS: "[programs]", **dict(zip(addresses, functions, strict=True))}
        sums: dict[str, Counter[str]] = {}
        for address, counts in places.items():
            sums.setdefault(names[address], Counter()).update(counts)
        return {name: dict(counts) for name, counts in sums.items()}

    def received(self) -> list[tuple[int, int]]:
        counts = self.counters()
        return [(counts[f"{d}.rx_packets"], counts[f"{d}.rx_bytes"]) for d in self._devices]

    def _collected(self, timeout: float, made: Callable[[TrialCounts, Counts | None], T]) -> Collected[T]:
        """The trials of the answer, each with what the model counted in it. Raises CannotMeasure if that differs."""
        answer = self.receive(Trials, timeout)
        kinds = answer["valid"], answer["unsaturated"], answer["perturbed"]
        windows = None if self._model is None else self._model.windows()
        trials = sum(map(len, kinds))
        if windows is not None and trials != len(windows):
            raise CannotMeasure(f"the DUT made {trials} trials, the model saw {len(windows)}", "run it again")
        valid, unsaturated, perturbed = (
            [made(trial, None if windows is None else windows[trial["number"]]) for trial in kind] for kind in kinds
        )
        return Collected(valid, unsaturated, perturbed, answer["cpu_ns"])

    def _trial(self, found: TrialCounts, modelled: Counts | None) -> Trial:
        return Trial(
            duration_s=found["duration_ns"] / 1e9,
            busy_s=max(0.0, (found["duration_ns"] - found["idle_ns"]) / 1e9),
            processed=found["counts"][f"{self._devices[0]}.rx_packets"],
            forwarded=found["counts"][f"{self._devices[-1]}.tx_packets"],
            instructions=found.get("instructions"),
            modelled=modelled,
        )

    def prepare_stacks(self, rates: Sequence[int]) -> None:
        self.ask("prepare_stacks", Done, timeout=300, rates=list(rates))

    def arm_stacks(self, *, seconds: float) -> None:
        self.send("record_stacks", devices=self._devices, seconds=seconds, **BEGINNING)

    def collect_stacks(self, timeout: float) -> int:
        return self.receive(Recorded, timeout)["recorded"]["counts"][f"{self._devices[0]}.rx_packets"]

    def read_stacks(self) -> dict[str, int]:
        return of_packets(self.ask("read_stacks", Stacks, timeout=600)["stacks"], self.serving, self.not_of_packets)


#: The address under which all programs are counted.
PROGRAMS = 0


def of_packets(sampled: Mapping[str, int], serving: Sequence[str], others: tuple[str, ...]) -> dict[str, int]:
    """The stacks that packets cause, of stacks as the DUT's profiler reports them, program first.

    serving  functions in which the kernel begins to handle packets; their callers only show what the packets
             interrupted, so a packet's stack begins with one of these
    others   how the names of programs begin whose own time packets do not cause

    Kernel threads that work for packets (one that expires connections, say) count, too, and keep their name in front.
    """
    kept: Counter[str] = Counter()
    for stack, samples in sampled.items():
        program, *functions = stack.split(";")
        start = next((place for place, name in enumerate(functions) if name in serving), None)
        if start is not None:
            kept[";".join(functions[start:])] += samples
        elif not program.startswith(others):
            kept[stack] += samples
    return dict(kept)


_NUMBER = re.compile(r"\bline:? (\d{1,7})\b")
#: nft: "/dev/stdin:3:45-56: Error: …", then the line, then a line that marks these columns.
_COLUMN = re.compile(r":(\d{1,7}):(\d{1,7})(-\d+)?: ")
#: Characters of the line that are shown, and how many of them before the column that is wrong.
MAX_SHOWN = 160
BEFORE = 60


def with_line(message: str, files: Iterable[RulesetFile]) -> str:
    """The message, and behind it the line that it gives by number alone; of a long line, the part that is wrong."""
    name, _, said = message.partition(": ")
    lines = next((file.text.split("\n") for file in files if file.name == name), [])
    head, _, quoted = message.partition("\n")
    place = _COLUMN.search(head)
    if place and any(len(line) > MAX_SHOWN for line in quoted.split("\n")) and 0 < int(place[1]) <= len(lines):
        return "\n".join([head, *_around(lines[int(place[1]) - 1], int(place[2]))])
    found = _NUMBER.search(said)
    if found is None or not 0 < int(found[1]) <= len(lines):
        return message
    line = lines[int(found[1]) - 1].strip()
    if not line or line[:40] in said:
        return message
    return f"{message}\n  {name}:{found[1]}: {printable(line, MAX_SHOWN)}"


def _around(line: str, column: int) -> tuple[str, str]:
    """The part of a long line around a column, counted from 1, and the line below it that marks the column."""
    column = max(1, min(column, len(line)))
    begin = max(0, column - 1 - BEFORE)
    before, after = "… " if begin else "", " …" if begin + MAX_SHOWN < len(line) else ""
    part = line[begin : begin + MAX_SHOWN].replace("\t", " ")
    return f"  {before}{printable(part, MAX_SHOWN)}{after}", " " * (2 + len(before) + column - 1 - begin) + "^"
