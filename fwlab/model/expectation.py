# SPDX-License-Identifier: GPL-2.0-or-later
"""Expectations: what a case should measure, and why. lab.yml has the words, ranges.yml the numbers."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from fwlab.model.declared import Identifier, KernelSeries, Strict, series_of
from fwlab.model.metric import MAIN_METRIC, MetricName


def _in_order(value: tuple[float, float]) -> tuple[float, float]:
    low, high = value
    if math.isnan(low) or math.isnan(high) or low > high:
        raise ValueError(f"invalid range [{low:g}, {high:g}]: lower bound exceeds upper; write [lowest, highest]")
    return value


_Bound = Annotated[float, Field(allow_inf_nan=True)]
#: An inclusive range [lowest, highest] in the metric's unit; .inf leaves a side open.
Range = Annotated[tuple[_Bound, _Bound], AfterValidator(_in_order)]


class Wording(Strict):
    """The texts for the reader.

    why   the reason for the range: what the kernel does
    pass  what a figure inside the range shows
    fail  a hint for a figure outside it; it must be true for every figure outside
    """

    why: str
    passed: str = Field(alias="pass")
    failed: str = Field(alias="fail")


class Rationale(Wording):
    """A range's wording, where the range comes from, and for which kernels it holds.

    kernel  series of the DUT's kernel on which the range was measured, such as "6.1" or "FreeBSD 15.1"; only ranges
            that depend on the DUT's clock depend on it. None: any kernel
    source  documents (S1 to S5), files under results/ or pages of the lab
    """

    kernel: KernelSeries | None = None
    source: list[str] = Field(min_length=1)

    def applies_to(self, release: str) -> bool:
        """Whether the range holds on a DUT with this kernel release, such as 6.1.0-56-cloud-amd64."""
        return self.kernel is None or series_of(release) == self.kernel


class DeclaredExpectation(Wording):
    """An expectation as lab.yml declares it. Its ranges come from ranges.yml, next to lab.yml.

    metric    the metric that is judged
    cases     cases by id; the id of a sweep means the case of each of its values
    ratio_to  a case: the ratio of every other case to it is judged too, on every testbed. Default: the lab's baseline
              for capacity, if it has one for all systems; nothing for other metrics, and with `ratio_to: null`
    absolute  false: only the ratio is judged
    source    documents that the expectation goes back to; the raw results are named in ranges.yml
    """

    id: Identifier
    metric: MetricName = MAIN_METRIC
    cases: list[str] = Field(min_length=1)
    ratio_to: str | None = None
    absolute: bool = True
    source: list[str] = []

    @model_validator(mode="after")
    def _judges_something(self) -> DeclaredExpectation:
        if not self.absolute and self.ratio_to is None:
            raise ValueError("nothing is judged: give ratio_to, or remove `absolute: false`")
        return self

    def reject_unknown(self, metrics: dict[str, set[str]], sweeps: dict[str, list[str]]) -> None:
        """Check every name. `metrics`: by case id, what the case measures; `sweeps`: by sweep id, its case ids.

        Raises ValueError naming the case.
        """
        for name in [*self.cases, *([self.ratio_to] if self.ratio_to else [])]:
            if name not in metrics and (name not in sweeps or name == self.ratio_to):
                raise ValueError(f"expectation {self.id}: unknown case {name}")
            for case in sweeps.get(name, [name]):
                if self.metric not in metrics[case]:
                    raise ValueError(f"expectation {self.id}: case {case} does not measure {self.metric}")


class Expectation(Rationale):
    """A declared expectation with its ranges, ready to judge.

    virtual  absolute range by case on the virtual testbed, in the metric's unit; holds on any host
    ratio    range by case of the ratio to `ratio_to`, measured in the same session; holds on every testbed
    hosts    absolute ranges by host class and case on the real testbed
    """

    id: str
    metric: MetricName = MAIN_METRIC
    virtual: dict[str, Range] = {}
    ratio_to: str | None = None
    ratio: dict[str, Range] = {}
    hosts: dict[str, dict[str, Range]] = {}
