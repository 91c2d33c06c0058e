# SPDX-License-Identifier: GPL-2.0-or-later
"""What a metric is: its unit, how people read it, what it may be measured on, and its values in a result.

The metrics themselves are in `fwlab.metrics`, one file each, and in plug-ins. Below that package a metric is known by
its name alone; who needs more of it, such as judging, is given this protocol or a mapping of names to metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from pydantic import AfterValidator, Field, ValidationInfo

from fwlab.model.declared import one_of

if TYPE_CHECKING:
    from fwlab.model.results import Clock, Measured, TestbedFacts

#: The metric of whatever names none in lab.yml: what most cases are about, and what ratios and loads refer to.
MAIN_METRIC: Final = "capacity"
#: What a case may play: packets of a profile, TCP connections, or nothing at all.
TrafficKind = Literal["packets", "connections", "none"]
#: Where a value is shown: among the figures that have a ratio to a baseline, in a table of its sweeps, or by itself.
Table = Literal["ratio", "sweep", "plain"]
#: Which traffic class a ruleset must treat alike at any load for a check to count: the check's own, every one, or none.
InvalidatedBy = Literal["own class", "any class", "none"]


@dataclass(frozen=True)
class Display:
    """How people read a metric; documents for machines keep the bare number in the metric's own unit.

    label    its name in a table or a sentence, such as "load time"
    unit     the unit that it is shown in; "" for a plain count
    factor   what a value in the metric's own unit is multiplied by for that
    significant  how many digits a value is shown with
    whole    a count: no fraction
    trimmed  without zeros at the end of the fraction
    table    which table of the guide it belongs to
    listed   whether terminal and page list its figures one by one; False where they have a column or a table for it
    cost_per_packet  whether a report also shows its reciprocal: what one packet costs
    caption  the sentence below a plot of it; "" where it is not plotted
    x_label  of such a plot, with {parameter} and {baseline}
    """

    label: str
    unit: str = ""
    factor: float = 1.0
    significant: int = 4
    whole: bool = False
    trimmed: bool = False
    table: Table = "plain"
    listed: bool = True
    cost_per_packet: bool = False
    caption: str = ""
    x_label: str = "number of {parameter}"

    @property
    def heading(self) -> str:
        """Label and unit: "capacity, kpps"."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


@dataclass(frozen=True)
class Tolerance:
    """How far an expected range reaches to each side of the measured median, at least.

    share     as a share of the median
    ratio     as a share, for a range of ratios: two medians may lie on opposite sides of theirs
    absolute  in the metric's unit, for a metric from 0 to 1; `share` is not used then
    """

    share: float = 0.0
    ratio: float = 0.0
    absolute: float | None = None


@dataclass(frozen=True)
class NeedsClock:
    """The clock that a metric needs, and why the other one does not do."""

    clock: Clock
    why: str


class TimedTrial(Protocol):
    """A trial that knows for which share of its time the DUT's CPU was busy."""

    @property
    def busy_share(self) -> float:
        """0 to 1."""


class Metric(Protocol):
    """What every part of the project may ask of a metric. `fwlab.metrics.measurement` adds how it is measured.

    The values here are those of a metric that needs packets, gives the same figure on every host, and does not need a
    saturated DUT.

    name      as in lab.yml and in results, such as "load_time"
    unit      of its values: pps, cps, s, ratio, count, bytes
    position  its place among the metrics, wherever they stand in an order
    portable  whether the virtual testbed gives the same figure on any host; otherwise it is never judged
    needs_clock  whether an absolute range holds only for the clock on which it was measured
    clock     the DUT's clock without which it has no meaning, and why; None: it is measured on any
    traffic   what it can be measured on
    needs     fields that a case or an exercise must give for it, and what they are; fields that it has not are ignored
    by_class  whether it is the share of one traffic class, which a check has to name
    of_baseline  whether it is measured at a multiple of the baseline's capacity (`total_load`), which must be known
    invalidated_by  a load-dependent treatment of which traffic class makes a check fail
    min_busy  share of a trial in which the DUT must be busy; None where it need not be saturated
    below_ceiling  whether a figure near what the generator can send is one of the generator's
    interleaved  whether its trials alternate with those of a baseline where the DUT's clock is the host's
    ranked    whether a class's page lists the figures of all works that pass every other check, the lowest first
    usual_spread  trials further apart than this are measured once more on the virtual testbed; None: never
    """

    name: str
    unit: str
    display: Display
    position: int = 1000
    tolerance: Tolerance = Tolerance()
    portable: bool = True
    needs_clock: bool = False
    clock: NeedsClock | None = None
    traffic: frozenset[TrafficKind] = frozenset({"packets"})
    needs: Mapping[str, str] = MappingProxyType({})
    by_class: bool = False
    of_baseline: bool = False
    invalidated_by: InvalidatedBy = "none"
    min_busy: float | None = None
    below_ceiling: bool = False
    interleaved: bool = False
    ranked: bool = False
    usual_spread: float | None = None

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        """Every trial's value in the metric's unit; empty where it was not measured.

        Usually what the metric's steps recorded in `extra` under its name.
        """
        return list(measured.extra.get(self.name, []))

    def counts(self, measured: Measured, traffic_class: str = "") -> tuple[int, int] | None:
        """Of a share: packets that count, and packets in all; None for other metrics."""
        return None

    def trials(self, measured: Measured) -> Sequence[TimedTrial]:
        """The trials in which the DUT had to be saturated; none where `min_busy` is None."""
        return []

    def doubts(self, measured: Measured) -> list[str]:
        """Why the figure is not what the metric promises, by the measurement itself; usually nothing."""
        return []

    def changed_in_flood(self, measured: Measured, between: tuple[float, float]) -> str | None:
        """How the flood shows that the figure is another one under load; None if it does not, or cannot show it.

        between  the range that a check accepts
        """
        return None

    def reservations(self, measured: Measured) -> list[str]:
        """Why the value must not be judged against a range, although nothing went wrong; usually nothing."""
        return []


Metrics = Mapping[str, Metric]


def refused_by_clock(metric: Metric, clock: Clock) -> str | None:
    """Why this metric cannot be measured on a DUT with this clock; None if it can."""
    if metric.clock is None or metric.clock.clock == clock:
        return None
    return f"{metric.name} needs a DUT on the clock of the {metric.clock.clock}: {metric.clock.why}"


def known_metrics(info: ValidationInfo) -> Metrics | None:
    """The metrics that a document is checked against; None where it is read as it is, as old results are."""
    context: Any = info.context
    return context.get("metrics") if isinstance(context, Mapping) else None


def _known(name: str, info: ValidationInfo) -> str:
    metrics = known_metrics(info)
    if metrics is not None and name not in metrics:
        raise ValueError(f"unknown metric {name!r}; known metrics: {', '.join(metrics)}")
    return name


#: The name of a metric in a document. It is checked where the reader gives the registry as context.
MetricName = Annotated[str, AfterValidator(_known), Field(json_schema_extra=one_of("metrics"))]


def judgeable(names: Sequence[str], metrics: Metrics, where: str) -> None:
    """Raises ValueError if figures of one of these metrics differ from host to host: no range can hold for them."""
    for name in names:
        if name in metrics and not metrics[name].portable:
            raise ValueError(f"{where}: {name} differs from host to host and cannot be judged")


def missing_fields(item: object, names: Sequence[str], metrics: Metrics) -> list[str]:
    """What `item` has to give for these metrics and does not: "survival needs a class"."""
    return [
        f"{name} needs {what}"
        for name in names
        if name in metrics
        for field, what in metrics[name].needs.items()
        if getattr(item, field, ...) is None
    ]
