# SPDX-License-Identifier: GPL-2.0-or-later
"""lab.yml as data. A lab is a folder; what its lab.yml may say is written here and nowhere else."""

from __future__ import annotations

import ipaddress
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from fwlab.words.expectation import Check, Expectation
from fwlab.words.metric import Metric

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Value = int | float | str


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrafficClass(_Strict):
    """Packets that are counted together. What is not given matches everything."""

    src: str | None = None
    dst: str | None = None
    proto: Literal["udp", "tcp", "icmp"] | None = None
    sport: int | str | None = None
    dport: int | str | None = None

    @field_validator("src", "dst")
    @classmethod
    def _prefix(cls, value: str | None) -> str | None:
        if value is not None:
            ipaddress.ip_network(value)
        return value

    @field_validator("sport", "dport")
    @classmethod
    def _ports(cls, value: int | str | None) -> int | str | None:
        if value is not None:
            low, _, high = str(value).partition("-")
            if not (low.isdecimal() and (high or low).isdecimal() and int(low) <= int(high or low) <= 65535):
                raise ValueError(f"{value} is neither a port nor lowest-highest")
        return value


class Traffic(_Strict):
    """One traffic profile with its tunables; `profile` is a file in the lab's folder."""

    profile: str
    tunables: dict[str, Value] = {}


class Published(_Strict):
    """What a source document printed for this case: its figure and its ratio to its own baseline."""

    source: str
    value: float | None = None
    unit: str = "pps"
    ratio: float | None = None


class Case(_Strict):
    """One ruleset with its parameters, one traffic, one metric (and others that come with it)."""

    id: Identifier
    title: str
    ruleset: str
    parameters: dict[str, Value] = {}
    traffic: str | None = None
    metric: Metric = Metric.CAPACITY
    also: list[Metric] = []
    load: Literal["whole", "each"] = "whole"
    trials: int | None = Field(default=None, ge=1)
    published: list[Published] = []
    sweep: str | None = None
    quick: bool = False


class Sweep(_Strict):
    """One case for each value of one parameter: `<id>-<value>`."""

    id: Identifier
    title: str
    ruleset: str
    parameter: str
    values: list[Value] = Field(min_length=1)
    parameters: dict[str, Value] = {}
    traffic: str | None = None
    metric: Metric = Metric.CAPACITY
    also: list[Metric] = []
    load: Literal["whole", "each"] = "whole"
    trials: int | None = Field(default=None, ge=1)
    published: dict[str, list[Published]] = {}
    quick: list[Value] = []

    @model_validator(mode="after")
    def _known_values(self) -> Sweep:
        names = {str(value) for value in self.values}
        for name in [*self.published, *map(str, self.quick)]:
            if name not in names:
                raise ValueError(f"sweep {self.id}: {name} is not one of its values")
        return self

    def cases(self) -> list[Case]:
        return [
            Case(
                id=f"{self.id}-{value}",
                title=f"{self.title}, {self.parameter} {value}",
                ruleset=self.ruleset,
                parameters={**self.parameters, self.parameter: value},
                traffic=self.traffic,
                metric=self.metric,
                also=self.also,
                load=self.load,
                trials=self.trials,
                published=self.published.get(str(value), []),
                sweep=self.id,
                quick=value in self.quick,
            )
            for value in self.values
        ]


class Predict(_Strict):
    """The number that the student writes down before measuring."""

    question: str
    metric: Metric = Metric.CAPACITY


class Exercise(_Strict):
    """What the student writes into work/<id>/, and how it is judged."""

    id: Identifier
    title: str
    traffic: str
    parameters: dict[str, Value] = {}
    predict: Predict
    checks: list[Check] = Field(min_length=1)


class Needs(_Strict):
    """What the DUT must have before a measurement means anything; checked through Testinfra."""

    packages: list[str] = []
    modules: list[str] = []
    sysctls: dict[str, int | str] = {}
    clock: Literal["any", "real"] = "any"


class Lab(_Strict):
    """One lab. `folder` and `number` come from where it was found."""

    id: Annotated[str, Field(pattern=r"^lab\d\d-[a-z0-9-]+$")]
    title: str
    minutes: int = Field(ge=5, le=240)
    sources: list[str] = []
    needs: Needs = Needs()
    classes: dict[Identifier, TrafficClass]
    traffic: dict[Identifier, Traffic]
    baseline: str
    single_cases: list[Case] = Field(default=[], alias="cases")
    sweeps: list[Sweep] = []
    exercises: list[Exercise] = []
    expectations: list[Expectation] = []
    _folder: Path = PrivateAttr(default=Path())

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def number(self) -> int:
        """The two digits of the identifier; ports derive from it."""
        return int(re.match(r"lab(\d\d)", self.id)[1])

    @cached_property
    def cases(self) -> dict[str, Case]:
        """Every case by id, sweeps expanded, in the order in which they are measured."""
        every = [*self.single_cases, *(case for sweep in self.sweeps for case in sweep.cases())]
        return {case.id: case for case in every}

    def exercise(self, exercise_id: str) -> Exercise | None:
        return next((e for e in self.exercises if e.id == exercise_id), None)

    @model_validator(mode="after")
    def _hangs_together(self) -> Lab:
        every = [*self.single_cases, *(case for sweep in self.sweeps for case in sweep.cases())]
        seen: set[str] = set()
        for case in every:
            if case.id in seen:
                raise ValueError(f"case {case.id} is declared twice")
            seen.add(case.id)
            if case.traffic is None and case.metric is not Metric.LOAD_TIME:
                raise ValueError(f"case {case.id}: {case.metric.value} needs a traffic")
            if case.traffic is not None and case.traffic not in self.traffic:
                raise ValueError(f"case {case.id}: unknown traffic {case.traffic}")
        if self.baseline not in seen:
            raise ValueError(f"baseline: unknown case {self.baseline}")
        metrics = {case.id: {case.metric, *case.also} for case in every}
        for expectation in self.expectations:
            expectation.refuse_unknown(metrics)
        exercises: set[str] = set()
        for exercise in self.exercises:
            if exercise.id in exercises:
                raise ValueError(f"exercise {exercise.id} is declared twice")
            exercises.add(exercise.id)
            if exercise.traffic not in self.traffic:
                raise ValueError(f"exercise {exercise.id}: unknown traffic {exercise.traffic}")
            for check in exercise.checks:
                check.refuse_unknown(exercise.id, set(self.classes), metrics)
        return self
