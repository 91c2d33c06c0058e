# SPDX-License-Identifier: GPL-2.0-or-later
"""What a figure should be, and why. Data only: no expressions in YAML."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from fwlab.model.declared import Strict
from fwlab.model.metric import MetricName, Metrics


def _right_way_up(value: tuple[float, float]) -> tuple[float, float]:
    low, high = value
    if math.isnan(low) or math.isnan(high) or low > high:
        raise ValueError(f"range [{low:g}, {high:g}] is upside down: write [lowest, highest]")
    return value


_Bound = Annotated[float, Field(allow_inf_nan=True)]
#: An inclusive range [lowest, highest] in the metric's unit; .inf leaves a side open.
Range = Annotated[tuple[_Bound, _Bound], AfterValidator(_right_way_up)]


class Texts(Strict):
    """Why the range is what it is, where it comes from, and what the student reads.

    `kernel` is the series of the DUT's kernel on which an absolute range was measured, such as "6.1": the guest
    kernel is part of the instrument. Without it the range holds on every kernel.
    """

    kernel: str | None = Field(default=None, pattern=r"^\d+\.\d+$")
    why: str
    source: list[str] = Field(min_length=1)
    passed: str = Field(alias="pass")
    failed: str = Field(alias="fail")

    def knows(self, release: str) -> bool:
        """Whether absolute ranges hold on a DUT with this kernel release, such as 6.1.0-56-cloud-amd64."""
        return self.kernel is None or release.startswith(f"{self.kernel}.")


class Expectation(Texts):
    """Ranges of one metric for one or several cases.

    virtual    absolute range by case on the virtual testbed (portable: it counts instructions)
    ratio      range by case of the ratio to `ratio_to`, measured in the same session, on any testbed
    hosts      absolute ranges by host class and case on the real testbed
    apart      by case, how far its figures of several loadings were seen to lie from one another, as a share: a new
               range reaches at least so far to each side
    """

    id: str
    metric: MetricName = "capacity"
    virtual: dict[str, Range] = {}
    ratio_to: str | None = None
    ratio: dict[str, Range] = {}
    hosts: dict[str, dict[str, Range]] = {}
    apart: dict[str, Annotated[float, Field(gt=0, le=0.1)]] = {}

    @model_validator(mode="after")
    def _says_something(self) -> Expectation:
        if not (self.virtual or self.ratio or self.hosts):
            raise ValueError(f"expectation {self.id} has no range: give virtual, ratio or hosts")
        if bool(self.ratio) != (self.ratio_to is not None):
            raise ValueError(f"expectation {self.id}: ratio and ratio_to go together")
        return self

    def named_cases(self) -> set[str]:
        named = {*self.virtual, *self.ratio, *self.apart, *(case for host in self.hosts.values() for case in host)}
        return named | ({self.ratio_to} if self.ratio_to else set())

    def refuse_unknown(self, metrics: dict[str, set[str]]) -> None:
        """`metrics`: by case id, what that case yields. Raises ValueError naming the case."""
        for case in sorted(self.named_cases()):
            if case not in metrics:
                raise ValueError(f"expectation {self.id}: unknown case {case}")
            if self.metric not in metrics[case]:
                raise ValueError(f"expectation {self.id}: case {case} does not measure {self.metric}")


class Check(Texts):
    """One condition on an exercise's ruleset.

    `between` is absolute; where the metric is capacity or load_time it holds on the virtual testbed
    only, unless `ratio_to` names a case: then it is the ratio to that case in the same session.
    `traffic_class` names the class for `delivered`.
    """

    metric: MetricName
    between: Range
    traffic_class: str | None = Field(default=None, alias="class")
    ratio_to: str | None = None

    @property
    def id(self) -> str:
        return f"{self.metric}-{self.traffic_class}" if self.traffic_class else self.metric

    def refuse_unknown(self, exercise: str, classes: set[str], metrics: dict[str, set[str]], known: Metrics) -> None:
        """`metrics`: by case id, what that case yields; `known`: the registry.

        Raises ValueError naming the class or the case.
        """
        if self.metric in known and known[self.metric].by_class and self.traffic_class is None:
            raise ValueError(f"exercise {exercise}: {self.metric} needs a class")
        if self.traffic_class is not None and self.traffic_class not in classes:
            raise ValueError(f"exercise {exercise}: unknown class {self.traffic_class}")
        if self.ratio_to is not None and self.ratio_to not in metrics:
            raise ValueError(f"exercise {exercise}: unknown case {self.ratio_to}")
        if self.ratio_to is not None and self.metric not in metrics[self.ratio_to]:
            raise ValueError(f"exercise {exercise}: case {self.ratio_to} does not measure {self.metric}")
