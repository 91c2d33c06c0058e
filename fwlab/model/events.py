# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens during long work, as types. Whoever works sends events; only a door prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StepStarted:
    """A step whose length nobody knows, such as booting."""

    what: str


@dataclass(frozen=True)
class Waits:
    """Another session holds the machines of a lab; `holder` says whose it is."""

    machines: str
    holder: str

    def __str__(self) -> str:
        return f"waiting for the machines of {self.machines}: in use by {self.holder}"


@dataclass(frozen=True)
class LogLine:
    """A line that a tool below said, such as Vagrant."""

    line: str


@dataclass(frozen=True)
class PlanMade:
    """How many cases or exercises will be measured."""

    items: int


@dataclass(frozen=True)
class ItemBegan:
    item: str


@dataclass(frozen=True)
class ItemEnded:
    """`summary` is the figure in one short line, or why there is none."""

    item: str
    summary: str
    ok: bool


Event = StepStarted | LogLine | PlanMade | ItemBegan | ItemEnded
Listener = Callable[[Event], None]


def silent(_event: Event) -> None:
    """The listener of those who do not want to hear."""
