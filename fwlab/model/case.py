# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases: what is measured, one by one or in sweeps, and what the source documents printed for it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, model_validator

from fwlab.model.declared import Identifier, Strict, Value
from fwlab.model.metric import MetricName, known_metrics, missing_fields


class Published(Strict):
    """What a source document printed for this case: its figure and its ratio to its own baseline."""

    source: str
    value: float | None = None
    unit: str = "pps"
    ratio: float | None = None


class Trials(Strict):
    """How often a case is measured, and for how long at least: seconds of the DUT's clock, packets.

    settle  seconds of the DUT's clock under load before the first trial: until first packets have made the entries
            that the others find, for example
    """

    count: int = Field(default=5, ge=1)
    seconds: float = Field(default=0.15, gt=0)
    packets: int = Field(default=640, ge=64)
    settle: float = Field(default=0.02, ge=0, le=60)

    def changed(self, by: int | dict[str, float] | None) -> Trials:
        """These, with another count or with whatever else is given. Raises ValueError for what trials do not have."""
        given = by if isinstance(by, dict) else {} if by is None else {"count": by}
        return Trials.model_validate({**self.model_dump(), **given})


class _Measurement(Strict):
    """What a single case and a sweep have in common.

    also       metrics that come with the first one
    trials     how many, or what else is different from the lab's trials
    load       the ruleset by one command of its tool, or by one for each rule
    victim_class   the traffic class that survival is about
    state_packets  packets that are played before states are counted
    sampled    whether the DUT is also sampled under load, function by function
    fresh      whether the ruleset is loaded anew before each attempt at trials: the DUT then knows no flow
    """

    id: Identifier
    title: str
    ruleset: str
    parameters: dict[str, Value] = {}
    traffic: str | None = None
    metric: MetricName = "capacity"
    also: list[MetricName] = []
    load: Literal["whole", "each"] = "whole"
    trials: int | dict[str, float] | None = None
    victim_class: Identifier | None = None
    state_packets: int | None = Field(default=None, ge=1)
    sampled: bool = False
    fresh: bool = False

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> _Measurement:
        Trials().changed(self.trials)
        for missing in missing_fields(self, [self.metric, *self.also], known_metrics(info) or {}):
            raise ValueError(f"{self.id}: {missing}")
        return self


class Case(_Measurement):
    """One ruleset with its parameters, one traffic, one metric (and others that come with it).

    offered  for survival: the whole load, as a multiple of the baseline's capacity
    """

    published: list[Published] = []
    sweep: str | None = None
    quick: bool = False
    offered: float | None = Field(default=None, gt=0)


class Sweep(_Measurement):
    """One case for each value of one parameter: `<id>-<value>`.

    varies  what the parameter belongs to: the ruleset's template, or a tunable of the traffic profile
    class_load  for survival: the load of the class itself, as a multiple of the baseline's capacity; the parameter
            is the load of the attack that comes on top, likewise
    """

    parameter: str
    values: list[Value] = Field(min_length=1)
    varies: Literal["ruleset", "traffic"] = "ruleset"
    class_load: float = Field(default=0.1, gt=0)
    published: dict[str, list[Published]] = {}
    quick: list[Value] = []

    @model_validator(mode="after")
    def _known_values(self) -> Sweep:
        names = {str(value) for value in self.values}
        for name in [*self.published, *map(str, self.quick)]:
            if name not in names:
                raise ValueError(f"sweep {self.id}: {name} is not one of its values")
        if self.varies == "traffic" and self.traffic is None:
            raise ValueError(f"sweep {self.id}: it varies the traffic, but names none")
        if self.metric == "survival" and not all(isinstance(v, int | float) and v >= 0 for v in self.values):
            raise ValueError(f"sweep {self.id}: survival needs numbers, multiples of the baseline's capacity")
        return self

    def traffic_for(self, value: Value) -> str | None:
        """Name of the traffic of one value: its own where the sweep varies the traffic."""
        return f"{self.traffic}-{self.parameter}-{value}" if self.varies == "traffic" else self.traffic

    def cases(self) -> list[Case]:
        common = {name: getattr(self, name) for name in _Measurement.model_fields}
        return [
            Case(
                **{
                    **common,
                    "id": f"{self.id}-{str(value).lower().replace('.', '-')}",
                    "title": f"{self.title}, {self.parameter} {value}",
                    "parameters": {**self.parameters, self.parameter: value},
                    "traffic": self.traffic_for(value),
                },
                published=self.published.get(str(value), []),
                sweep=self.id,
                quick=value in self.quick,
                offered=self.class_load + value if self.metric == "survival" else None,
            )
            for value in self.values
        ]


class Crossing(Strict):
    """Where one sweep overtakes another of the same parameter, such as a set overtaking a list of rules."""

    id: Identifier
    title: str
    behind: Identifier
    ahead: Identifier
    published: list[Published] = []
