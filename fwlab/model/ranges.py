# SPDX-License-Identifier: GPL-2.0-or-later
"""ranges.yml as data: the medians that a lab's expectations are judged by, and how far a figure may lie from them.

The file is generated from a run and lies next to lab.yml. A range is a median, less and plus a tolerance. The range
of a ratio follows from two medians and their tolerances, so that no number is written there twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from fwlab.model.declared import KernelSeries, Strict, exactly_one, or_else
from fwlab.model.expectation import DeclaredExpectation, Expectation, Range
from fwlab.model.metric import MetricName

_DIGITS = 4


class Median(Strict):
    """One case's median. A bare number in ranges.yml is one without exceptions.

    median     in the metric's unit
    tolerance  in place of the metric's; likewise `kernel` and `source` in place of the file's
    """

    model_config = ConfigDict(json_schema_extra=or_else({"type": "number", "minimum": 0}))
    median: float = Field(ge=0)
    tolerance: float | None = Field(default=None, ge=0, lt=1)
    kernel: KernelSeries | None = None
    source: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_number(cls, data: Any) -> Any:
        return {"median": data} if isinstance(data, int | float) and not isinstance(data, bool) else data


class MetricRanges(Strict):
    """The medians of one metric.

    tolerance        how far a figure may lie from its median, as a share of the median ...
    margin           ... or in absolute terms, for metrics that are shares themselves (0 to 1)
    ratio_tolerance  how far the ratio of two figures may lie from the ratio of their medians, as a share of it
    medians          by case
    """

    model_config = ConfigDict(json_schema_extra=exactly_one("tolerance", "margin"))
    tolerance: float | None = Field(default=None, ge=0, lt=1)
    margin: float | None = Field(default=None, ge=0, lt=1)
    ratio_tolerance: float | None = Field(default=None, ge=0, lt=1)
    medians: dict[str, Median]

    @model_validator(mode="after")
    def _one_of_two(self) -> MetricRanges:
        if (self.tolerance is None) == (self.margin is None):
            raise ValueError("give either tolerance or margin")
        return self

    def absolute(self, case: str) -> Range:
        """The range of one case, in the metric's unit, rounded outwards to four digits."""
        value, reach = self.medians[case].median, self._reach(case)
        if self.margin is not None:
            return round(max(0.0, value - reach), _DIGITS), round(min(1.0, value + reach), _DIGITS)
        return _around(value, reach)

    def ratio(self, case: str, base: str) -> Range | None:
        """The range of the ratio of one case to another; None where there is none to judge by."""
        if self.ratio_tolerance is None or not self.medians[base].median:
            return None
        share = max(self.ratio_tolerance, self._reach(case), self._reach(base))
        return _around(self.medians[case].median / self.medians[base].median, share)

    def _reach(self, case: str) -> float:
        own = self.medians[case].tolerance
        return own if own is not None else self.margin if self.margin is not None else self.tolerance or 0.0


class MeasuredRanges(Strict):
    """Everything that was measured on one kind of testbed.

    kernel   series of the DUT's kernel, such as "6.1"
    source   the file under results/ with the raw results
    metrics  by metric
    """

    kernel: KernelSeries
    source: str
    metrics: dict[MetricName, MetricRanges]


class Ranges(Strict):
    """A whole ranges.yml.

    virtual  measured on the virtual testbed: holds on any host
    hosts    measured on the real testbed, by host class
    starts   by exercise, the checks that its start passes
    """

    virtual: MeasuredRanges | None = None
    hosts: dict[str, MeasuredRanges] = {}
    starts: dict[str, list[str]] = {}

    def expectations(self, declared: DeclaredExpectation, cases: list[str]) -> list[Expectation]:
        """The expectation with its ranges; several where their kernel or source differs, none where nothing is known.

        `cases`: the ids of its cases, sweeps written out.
        """
        groups: dict[tuple[str, str], dict[str, Any]] = {}
        testbeds = [("", self.virtual), *self.hosts.items()]
        for host, measured in testbeds:
            table = measured.metrics.get(declared.metric) if measured is not None else None
            if measured is None or table is None:
                continue
            for case in cases:
                if case not in table.medians:
                    continue
                entry = table.medians[case]
                key = entry.kernel or measured.kernel, entry.source or measured.source
                group = groups.setdefault(key, {"virtual": {}, "ratio": {}, "hosts": {}})
                if declared.absolute:
                    place = group["hosts"].setdefault(host, {}) if host else group["virtual"]
                    place[case] = table.absolute(case)
                base = declared.ratio_to
                if not host and base in table.medians and case != base and (found := table.ratio(case, base)):
                    group["ratio"][case] = found
        return [_resolved(declared, kernel, source, group) for (kernel, source), group in groups.items()]


def _resolved(declared: DeclaredExpectation, kernel: str, source: str, group: dict[str, Any]) -> Expectation:
    return Expectation(
        id=declared.id,
        metric=declared.metric,
        kernel=kernel,
        ratio_to=declared.ratio_to if group["ratio"] else None,
        why=declared.why,
        source=[source, *declared.source],
        passed=declared.passed,
        failed=declared.failed,
        **group,
    )


def _around(value: float, share: float) -> Range:
    return _rounded(value * (1 - share), math.floor), _rounded(value * (1 + share), math.ceil)


def _rounded(value: float, direction: Callable[[float], int]) -> float:
    if not value:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - _DIGITS)
    return float(f"{direction(round(value / unit, 6)) * unit:.{_DIGITS}g}")
