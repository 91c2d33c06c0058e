# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress events of long operations. The code that works emits them; only the command line prints them."""

from collections.abc import Callable
from dataclasses import dataclass


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
class ItemFinished:
    """One case or exercise is done. `summary` is its result in one short line, or why there is none."""

    item: str
    summary: str
    ok: bool


Event = StepStarted | MachinesBusy | LogLine | PlanMade | ItemStarted | ItemFinished
Listener = Callable[[Event], None]
