# SPDX-License-Identifier: GPL-2.0-or-later
"""What a device under test can be asked for, whatever operating system it runs."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, Unpack

from fwlab.dut.agent_protocol import TableStates, TrialTerms
from fwlab.model.errors import CannotMeasure
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import Counts, FiveTuple, Trial

T = TypeVar("T")


@dataclass(frozen=True)
class Window:
    """One trial, counted by link.

    duration_s  length in seconds of the DUT's clock
    busy_s      of these, how long the CPU was not idle
    packets     packets received on each link, in the order of the links
    modelled    what a model of a core counted meanwhile, if one watches
    """

    duration_s: float
    busy_s: float
    packets: list[int]
    modelled: Counts | None = None

    @property
    def busy_share(self) -> float:
        """Share of the trial in which the CPU was busy, 0 to 1."""
        return self.busy_s / self.duration_s if self.duration_s else 0.0


class Collected(NamedTuple, Generic[T]):
    """The trials of one measurement.

    valid        the DUT was saturated, and nothing but packets used its CPU
    unsaturated  the DUT was idle for part of the time
    perturbed    something other than packets used the CPU
    cpu_ns       around the perturbed trials: CPU time of each program and each [kernel thread], in nanoseconds
    """

    valid: list[T]
    unsaturated: list[T]
    perturbed: list[T]
    cpu_ns: dict[str, int]


class Drained(NamedTuple):
    """Counts since boot, once the receive ring is empty.

    counters     as `Dut.counters` returns them
    queue_drops  packets that Linux's own sending queues on the links have dropped
    """

    counters: dict[str, int]
    queue_drops: int


class UnknownOperation(CannotMeasure):
    """The agent of this DUT's system does not know what it was asked for."""


class CoreModel(Protocol):
    """What a model of a core counts, which watches the DUT from outside. Every method raises CannotMeasure."""

    def begin(self) -> None:
        """Trials count from here on."""

    def windows(self) -> list[Counts]:
        """What it counted in each trial since `begin`, in their order."""

    def places(self) -> dict[int, Counts]:
        """What it counted in all of these trials by the address of each block of code; 0: all programs."""


class Dut(Protocol):
    """A connection to the DUT. Leaving it as a context manager restores the start state.

    Every method raises CannotMeasure if the DUT does not answer, and DeadlineExceeded if it does not answer
    within the limit that `within` has set.

    can_be_paced  whether `never_idle` works, so that loads can be played in the DUT's own time
    """

    can_be_paced: bool

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def watched_by(self, model: CoreModel) -> None:
        """From now on each trial has what this model counts. Raises CannotMeasure if it cannot have it."""

    def modelled_functions(self) -> dict[str, Counts]:
        """What the model counted in the last trials, valid or not, by function of the kernel.

        Takes the DUT a while, so call it without traffic.
        """

    def install(self) -> None:
        """Save the agent on a DUT that is not connected, and wait for that of an interrupted session to end."""

    def open(self) -> None:
        """Connect. A connection that was closed can be opened again."""

    def close(self) -> None:
        """Disconnect, and wait until the DUT has undone whatever is still loaded."""

    def abandon(self) -> None:
        """Disconnect at once: the machine is being restored, or is gone."""

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """In this context all answers must arrive within `seconds` from now. Otherwise they raise DeadlineExceeded."""

    def facts(self) -> dict[str, Any]:
        """kernel, cmdline, clocksource, cpus, nics, image (its manifest) and packet_sockets (how many are open).

        The first call after a boot also records the start state.
        """

    def reset(self, next_ruleset: list[RulesetFile] | None = None) -> list[str]:
        """Restore the start state. Returns what still differs from it, one line for each difference.

        With `next_ruleset`, kernel modules may stay if they cost that ruleset's packets nothing.
        """

    def load(
        self, files: list[RulesetFile], *, each: bool = False, times: int = 1, timed: bool = True
    ) -> list[list[float]]:
        """Load every file with the tool of its kind, `times` times over.

        Returns the busy seconds of each file (of the DUT's clock), for each time.

        each   one command for each line of a file, as a shell loop would do it
        timed  exactly as an administrator would; otherwise the tools may be helped, and the times mean nothing

        Raises Refused with the tool's own message. Nothing is loaded then.
        """

    def must_admit_logins(self) -> None:
        """Raise Refused if the ruleset keeps new logins out. Those that are there may go on all the same."""

    def entries(self) -> int:
        """Rules that a passing packet can meet, plus addresses in the sets and maps that rules ask."""

    def states(self) -> TableStates:
        """The connection table."""

    def forget_states(self) -> bool:
        """Empty the connection table. False if there is none, or if this system's cannot be emptied."""

    def count_flows(self) -> bool:
        """The same, and from then on each entry counts its packets. False if there is no table that can."""

    def flows(self) -> dict[FiveTuple, int]:
        """The packets of each flow of TCP and UDP that its entry has counted since `count_flows`."""

    def unload(self) -> None:
        """Take the rulesets away. Modules stay, and empty tables with them; a reset is still due."""

    def ask(self, operation: str, answer: type[T], *, timeout: float, **fields: Any) -> T:
        """What the agent counts for one metric alone, which declares the answer's type (`timeout` in seconds).

        Raises UnknownOperation if the agent of this system counts nothing of that name.
        """

    def blackhole(self) -> contextlib.AbstractContextManager[None]:
        """In this context packets that would leave by the last link are dropped after all rules.

        A queue that a ruleset has put there stays; nothing is dropped then.
        """

    def never_idle(self) -> contextlib.AbstractContextManager[None]:
        """In this context the CPU never sleeps, so a clock that counts instructions depends on nothing else."""

    def counters(self) -> dict[str, int]:
        """Packet counters since boot, as "eth0.rx_packets"."""

    def received(self) -> list[tuple[int, int]]:
        """Packets and bytes received since boot, for each link in order."""

    def drain(self) -> Drained:
        """Wait until the receive ring of the first link is empty. A flood leaves it full."""

    def arm(self, **trials: Unpack[TrialTerms]) -> None:
        """Start trials as soon as packets arrive. Returns at once; `collect` fetches the trials."""

    def collect(self, timeout: float) -> Collected[Trial]:
        """Wait at most `timeout` seconds for the trials of `arm`."""

    def collect_by_link(self, timeout: float) -> Collected[Window]:
        """The same, counted by link."""

    def prepare_stacks(self, rates: Sequence[int]) -> None:
        """Start the profiler. It will sample at all these rates at once (Hz of the DUT's clock)."""

    def arm_stacks(self, *, seconds: float) -> None:
        """Sample for `seconds` as soon as packets arrive. Returns at once."""

    def collect_stacks(self, timeout: float) -> int:
        """Wait for the end of sampling. Returns the packets received meanwhile."""

    def read_stacks(self) -> dict[str, int]:
        """Samples that packets cause, by stack: functions from the outermost inwards, joined by semicolons.

        A kernel thread that works for packets outside their path has its name in front.

        Takes the DUT a while, so call it without traffic.
        """
