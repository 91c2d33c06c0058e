# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress events of long operations. The code that works emits them; the command line and the web page show them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class StepStarted:
    """A step of unknown length has started, such as booting."""

    what: str


@dataclass(frozen=True)
class MachinesBusy:
    """Another session uses the machines of a lab; `holder` describes that session."""

    machines: str
    holder: str

    def __str__(self) -> str:
        return f"waiting for the machines of {self.machines}: in use by {self.holder}"


@dataclass(frozen=True)
class LogLine:
    """One line of output from a program, such as Vagrant."""

    line: str


@dataclass(frozen=True)
class PlanMade:
    """The number of cases or exercises to measure is known."""

    items: int


@dataclass(frozen=True)
class ItemStarted:
    """The measurement of one case or exercise has started."""

    item: str


@dataclass(frozen=True)
class ItemPhase:
    """What is being done for a case or exercise, in a word or two."""

    item: str
    phase: str


@dataclass(frozen=True)
class ItemFinished:
    """One case or exercise is done. `summary` is its result in one short line, or why there is none.

    figures  by metric, what was measured, in the metric's unit
    """

    item: str
    summary: str
    ok: bool
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemLeftOut:
    """A case is not measured; `why` is the reason."""

    item: str
    why: str


@dataclass(frozen=True)
class Warned:
    """Something that the reader of the figures must know, although nothing failed."""

    text: str


@dataclass(frozen=True)
class TrialsMade:
    """Further valid trials of a case or exercise, as a metric sees each of them, in its unit."""

    item: str
    metric: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class BoundsNarrowed:
    """A search for a rate has made one more trial.

    bounds    by goal, the highest load known to satisfy it and the lowest known not to (pps); None: not known yet
    trials    how many were made
    spent_s, budget_s  seconds that the search took so far, and that it may take
    """

    item: str
    bounds: Mapping[str, tuple[float | None, float | None]]
    trials: int
    spent_s: float
    budget_s: float

    def __str__(self) -> str:
        goals = ", ".join(f"{name} {self.interval(*both)}" for name, both in self.bounds.items())
        return f"{self.item}: {goals}; {self.trials} trials, {self.spent_s:.0f} of {self.budget_s:.0f} s"

    @staticmethod
    def interval(lower: float | None, upper: float | None) -> str:
        """An interval of loads in words: "from 812,000 to 820,000 pps"."""
        if lower is None and upper is None:
            return "not known yet"
        if lower is None:
            return f"below {upper:,.0f} pps"
        return f"from {lower:,.0f} pps" if upper is None else f"from {lower:,.0f} to {upper:,.0f} pps"


@dataclass(frozen=True)
class ResultMade:
    """What a command that writes no report has found, as it would print it."""

    text: str


@dataclass(frozen=True)
class TerminalLent:
    """Another program, such as a shell on the DUT, has the terminal until it is back."""


@dataclass(frozen=True)
class TerminalBack:
    """The lent terminal is free again."""


Event = (
    StepStarted
    | MachinesBusy
    | LogLine
    | PlanMade
    | ItemStarted
    | ItemPhase
    | ItemFinished
    | ItemLeftOut
    | TrialsMade
    | BoundsNarrowed
    | Warned
    | ResultMade
    | TerminalLent
    | TerminalBack
)
EventSink = Callable[[Event], None]


def document(event: Event) -> dict[str, Any]:
    """The event as plain data: its name and its fields."""
    return {"event": type(event).__name__, **asdict(event)}
