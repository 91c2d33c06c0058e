# SPDX-License-Identifier: GPL-2.0-or-later
"""lab.yml as data. A lab is a folder; what its lab.yml may say is written here and beside it, and nowhere else."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from fwlab.model.case import Case, Crossing, Sweep, Trials
from fwlab.model.declared import Identifier, Strict, Value
from fwlab.model.declared_traffic import Traffic, TrafficClass
from fwlab.model.expectation import Check, Expectation
from fwlab.model.metric import MetricName, Metrics, TrafficKind, known_metrics, missing_fields


class Predict(Strict):
    """The number that the student writes down before measuring."""

    question: str
    metric: MetricName = "capacity"


class Exercise(Strict):
    """What the student writes into work/<id>/, and how it is judged.

    load_dependent  what a right ruleset does to a packet may depend on load, time and the packets before it: the
              exercise teaches limits, or connection tracking
    settings  kinds of files that are taken beside rules: what they set may buy what a ruleset should
    """

    id: Identifier
    title: str
    traffic: str
    parameters: dict[str, Value] = {}
    state_packets: int | None = Field(default=None, ge=1)
    offered: float | None = Field(default=None, gt=0)
    load_dependent: bool = False
    settings: list[Literal["ethtool", "routes", "sysctl"]] = []
    predict: Predict
    checks: list[Check] = Field(min_length=1)


class Needs(Strict):
    """What the DUT must have before a measurement means anything; checked through Testinfra."""

    packages: list[str] = []
    modules: list[str] = []
    sysctls: dict[str, int | str] = {}
    clock: Literal["any", "real"] = "any"


class Lab(Strict):
    """One lab. `folder` and `number` come from where it was found."""

    id: Annotated[str, Field(pattern=r"^lab\d\d-[a-z0-9-]+$")]
    title: str
    minutes: int = Field(ge=5, le=240)
    sources: list[str] = []
    needs: Needs = Needs()
    classes: dict[Identifier, TrafficClass]
    declared_traffic: dict[Identifier, Traffic] = Field(alias="traffic")
    trials: Trials = Trials()
    baseline: str
    single_cases: list[Case] = Field(default=[], alias="cases")
    sweeps: list[Sweep] = []
    crossings: list[Crossing] = []
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

    @cached_property
    def traffic(self) -> dict[str, Traffic]:
        """Every traffic by name: the declared ones, and those of sweeps that vary a tunable."""
        every = dict(self.declared_traffic)
        for sweep in self.sweeps:
            if sweep.varies == "traffic" and sweep.traffic in self.declared_traffic:
                for value in sweep.values:
                    tuned = self.declared_traffic[sweep.traffic].tuned(**{sweep.parameter: value})
                    every[sweep.traffic_for(value)] = tuned
        return every

    def exercise(self, exercise_id: str) -> Exercise | None:
        return next((e for e in self.exercises if e.id == exercise_id), None)

    @model_validator(mode="after")
    def _hangs_together(self, info: ValidationInfo) -> Lab:
        known = known_metrics(info) or {}
        every = [*self.single_cases, *(case for sweep in self.sweeps for case in sweep.cases())]
        seen: set[str] = set()
        for case in every:
            if case.id in seen:
                raise ValueError(f"case {case.id} is declared twice")
            seen.add(case.id)
            if case.traffic is not None and case.traffic not in self.traffic:
                raise ValueError(f"case {case.id}: unknown traffic {case.traffic}")
            if case.victim_class is not None and case.victim_class not in self.classes:
                raise ValueError(f"case {case.id}: unknown class {case.victim_class}")
            self._refuse_wrong_traffic(f"case {case.id}", case.traffic, [case.metric, *case.also], known)
        for name, traffic in self.declared_traffic.items():
            background = traffic.connections and traffic.connections.background
            if background and (background not in self.traffic or self.traffic[background].profile is None):
                raise ValueError(f"traffic {name}: background: {background} is no traffic with a profile")
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
                check.refuse_unknown(exercise.id, set(self.classes), metrics, known)
            asked = list(dict.fromkeys(check.metric for check in exercise.checks))
            self._refuse_wrong_traffic(f"exercise {exercise.id}", exercise.traffic, asked, known)
            for missing in missing_fields(exercise, asked, known):
                raise ValueError(f"exercise {exercise.id}: {missing}")
        sweeps = {sweep.id for sweep in self.sweeps}
        for crossing in self.crossings:
            for name in (crossing.behind, crossing.ahead):
                if name not in sweeps:
                    raise ValueError(f"crossing {crossing.id}: unknown sweep {name}")
        return self

    def _refuse_wrong_traffic(self, item: str, name: str | None, asked: list[str], known: Metrics) -> None:
        """Each metric says whether it is measured on packets, on connections, or without traffic."""
        if name is None:
            for metric in (name for name in asked if name in known and "none" not in known[name].traffic):
                raise ValueError(f"{item}: {metric} needs a traffic")
            return
        played: TrafficKind = "packets" if self.traffic[name].connections is None else "connections"
        wrong = sorted(metric for metric in asked if metric in known and played not in known[metric].traffic)
        if wrong and played == "packets":
            raise ValueError(f"{item}: {', '.join(wrong)}: needs a traffic of connections, {name} is a profile")
        if wrong:
            raise ValueError(f"{item}: {', '.join(wrong)}: needs a traffic profile, {name} is connections")
