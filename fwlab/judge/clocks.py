# SPDX-License-Identifier: GPL-2.0-or-later
"""What figures by a DUT's clock mean: how trials scatter, what a packet costs, and what else may have changed them.

A testbed and its results name their clock. Callers ask the clock and never compare its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fwlab.judge.statistics import CONFIDENCE, Figure, min_values
from fwlab.model.results import Clock, TestbedFacts

#: Saturated trials of one measurement that are further apart than this measured something else as well, unless there
#: are enough of them for the median to be certain.
MAX_SPREAD = 0.05
#: On the host's clock trials scatter: maximum length of the median's confidence interval, as a share of the median.
MAX_INTERVAL = 0.05


class DutClock(ABC):
    """One kind of clock.

    title        in a line about the testbed
    cost_unit    of what a packet costs, which is 1e9 / pps; `cost_heading`: of a column
    reference    what the reference CPU does, if the clock is one's; `conditions`: that, behind a testbed's name
    repeats      figures are the same on every host. Else they hold for a class of hosts, a host's work and settings
                 change them, and trials that are to be compared alternate
    paced        loads can be paced by this clock, so that the DUT's own time decides what it is offered
    scatter_heading, scatter_meaning  of what is shown next to a median
    """

    title: str
    cost_unit: str
    cost_heading: str
    reference: str
    conditions: str
    repeats: bool
    paced: bool
    scatter_heading: str
    scatter_meaning: str

    @abstractmethod
    def scatter(self, found: Figure) -> float | None:
        """What is shown next to the median, as a share of it; None if there are too few trials for it."""

    def scatter_in_words(self, found: Figure) -> str:
        """For a progress line: how far trials lie apart, or of how many packets a single one's share is."""
        if found.several:
            return f"spread {found.spread:.2%}"
        return "" if found.counts is None else f"{found.counts[0]:,} of {found.counts[1]:,} packets"

    @abstractmethod
    def extent(self, found: Figure) -> tuple[float, float] | None:
        """Between which values such trials lie; None if there are too few of them."""

    @abstractmethod
    def too_scattered(self, found: Figure) -> list[str]:
        """Why the trials scatter too much for a figure; empty if they do not."""

    def needs_more_trials(self, found: Figure) -> bool:
        """Whether trials that should repeat lie so far apart that only more of them can give a median."""
        return self.repeats and found.spread > MAX_SPREAD


class InstructionClock(DutClock):
    """Each instruction takes the same time, whatever the host does meanwhile."""

    title = "instruction clock"
    cost_unit = "instructions per packet"
    cost_heading = "instr/pkt"
    reference = "one instruction per nanosecond"
    conditions = ", capacities on the reference CPU"
    repeats = True
    paced = True
    scatter_heading = "spread"
    scatter_meaning = (
        "spread is (max - min) / median over the trials; the interval of a share holds that of many packets (95 %)"
    )

    def scatter(self, found: Figure) -> float | None:
        return found.spread

    def extent(self, found: Figure) -> tuple[float, float] | None:
        return found.low, found.high

    def too_scattered(self, found: Figure) -> list[str]:
        if found.spread <= MAX_SPREAD:
            return []
        return too_far_apart(found, MAX_SPREAD) if found.uncertainty is None else _too_uncertain(found.uncertainty)


class HostClock(DutClock):
    """The host's own time: its frequency, its temperature and its other work are in every figure."""

    title = "host clock"
    cost_unit = "ns per packet"
    cost_heading = "ns/pkt"
    reference = ""
    conditions = ""
    repeats = False
    paced = False
    scatter_heading = f"{CONFIDENCE:.0%} CI"
    scatter_meaning = f"{CONFIDENCE:.0%} CI: length of the median's confidence interval, as a share of the median"

    def scatter(self, found: Figure) -> float | None:
        return found.uncertainty

    def scatter_in_words(self, found: Figure) -> str:
        if found.uncertainty is None:
            return super().scatter_in_words(found)
        return f"{CONFIDENCE:.0%} interval {found.uncertainty:.2%} wide"

    def extent(self, found: Figure) -> tuple[float, float] | None:
        return found.interval

    def too_scattered(self, found: Figure) -> list[str]:
        if found.uncertainty is not None:
            return _too_uncertain(found.uncertainty)
        return [f"{len(found.values)} trials give no {CONFIDENCE:.0%} confidence interval, {min_values()} do"]


def _too_uncertain(uncertainty: float) -> list[str]:
    if uncertainty <= MAX_INTERVAL:
        return []
    wide = f"the median's {CONFIDENCE:.0%} confidence interval is {uncertainty:.1%} wide"
    return [f"{wide}; at most {MAX_INTERVAL:.0%} can be judged (more trials, or a quieter host)"]


def too_far_apart(found: Figure, most: float, limit: str = "can be judged") -> list[str]:
    """What to say of trials that are further apart than `most`; empty if they are not."""
    if found.spread <= most:
        return []
    return [f"the trials are {found.spread:.1%} apart; at most {most:.0%} {limit}"]


CLOCKS: Final[Mapping[Clock, DutClock]] = MappingProxyType({"instructions": InstructionClock(), "host": HostClock()})


def clock_of(testbed: TestbedFacts) -> DutClock:
    """The clock by which figures of this testbed were measured."""
    return CLOCKS[testbed.clock]
