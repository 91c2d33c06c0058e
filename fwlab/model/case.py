# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases: what is measured, one by one or in sweeps, and what the source documents printed for it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from fwlab.model.declared import Identifier, Strict, Value
from fwlab.model.metric import MAIN_METRIC, MetricName, known_metrics, missing_fields

#: More values than anyone measures in one sweep.
_MAX_VALUES = 1000


class Published(Strict):
    """What a source document printed for this case.

    source  the document, S1 to S5
    value   its figure, in `unit`
    ratio   its ratio to the document's own baseline
    """

    source: str
    value: float | None = None
    unit: str = "pps"
    ratio: float | None = None


class Trials(Strict):
    """How often a case is measured, and for how long.

    count    trials
    seconds  of the DUT's clock that a trial lasts at least
    packets  that the DUT processes in a trial at least
    settle   seconds of the DUT's clock under load before the first trial, for example until the first packets have
             made the entries that the following ones find
    """

    count: int = Field(default=5, ge=1)
    seconds: float = Field(default=0.15, gt=0)
    packets: int = Field(default=640, ge=64)
    settle: float = Field(default=0.02, ge=0, le=60)

    def changed(self, by: int | dict[str, float] | None) -> Trials:
        """These trials with another count, or with other fields. Raises ValueError for an unknown field."""
        given = by if isinstance(by, dict) else {} if by is None else {"count": by}
        return Trials.model_validate({**self.model_dump(), **given})


class _Measurement(Strict):
    """What a single case and a sweep have in common.

    id             names the case in commands, reports and results
    title          as the reports show it
    ruleset        the folder rulesets/<ruleset>
    parameters     words of the folder's templates
    traffic        a name under `traffic` in lab.yml
    metric         what is measured
    also           further metrics, from the same measurement
    load           `whole`: the ruleset is loaded by one command of its tool; `each`: by one command for each rule
    trials         the number of trials, or whatever fields differ from the lab's `trials`
    victim_class   for survival: the traffic class whose share is measured
    state_packets  for states, state_bytes and memory: packets that are played before they are counted
    sampled        true: a profile of the kernel's functions under load is taken too
    reload_each_attempt  true: the ruleset is loaded again before each attempt at trials, so that the DUT knows no flow
    reload_spread  how far figures of several loadings were seen to lie apart, as a share: generated ranges reach at
                   least so far to each side
    system         in a lab for several systems, the one that it is measured on. Default: the one whose tools load the
                   ruleset's files; a ruleset without files has to name it
    cpus           CPUs that the DUT must have; on a DUT with fewer it is left out
    nic            the NIC on both links, one of needs.nics; on a DUT without it, the case is left out. Default: the
                   usual one
    """

    id: Identifier
    title: str
    ruleset: str
    parameters: dict[str, Value] = {}
    traffic: str | None = None
    metric: MetricName = MAIN_METRIC
    also: list[MetricName] = []
    load: Literal["whole", "each"] = "whole"
    trials: int | Annotated[dict[str, float], WithJsonSchema(Trials.model_json_schema())] | None = None
    victim_class: Identifier | None = None
    state_packets: int | None = Field(default=None, ge=1)
    sampled: bool = False
    reload_each_attempt: bool = False
    reload_spread: float = Field(default=0.0, ge=0, le=0.1)
    system: Identifier | None = None
    cpus: int = Field(default=1, ge=1)
    nic: Identifier | None = None

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> _Measurement:
        Trials().changed(self.trials)
        for missing in missing_fields(self, [self.metric, *self.also], known_metrics(info) or {}):
            raise ValueError(f"{self.id}: {missing}")
        return self


class Case(_Measurement):
    """One ruleset with its parameters, one traffic, one metric (and others from the same measurement).

    published  what source documents printed for it
    sweep      a sweep whose curve the case belongs to
    quick      true: measured by `fwlab run --quick` and by continuous integration
    total_load  for survival: the whole load, as a multiple of the baseline's capacity
    """

    published: list[Published] = []
    sweep: str | None = None
    quick: bool = False
    total_load: float | None = Field(default=None, gt=0)


class _Steps(Strict):
    """Values by their distance."""

    first: int = Field(alias="from", ge=0)
    last: int = Field(alias="to")
    step: int = Field(ge=1)


class _Factors(Strict):
    """Values by their ratio."""

    first: int = Field(alias="from", ge=1)
    last: int = Field(alias="to")
    factor: int = Field(ge=2)


_Series: TypeAdapter[_Steps | _Factors] = TypeAdapter(_Steps | _Factors)


def _written_out(given: Any) -> Any:
    """{from, to, step} or {from, to, factor} as the list of values."""
    if not isinstance(given, dict):
        return given
    try:
        series = _Series.validate_python(given, strict=True, by_name=False)
    except ValidationError:
        form = "write {from, to, step} or {from, to, factor}, in whole numbers above 0 (from: at least 0)"
        raise ValueError(form) from None
    value, values = series.first, [series.first]
    while value < series.last and len(values) <= _MAX_VALUES:
        value = value + series.step if isinstance(series, _Steps) else value * series.factor
        values.append(value)
    if value != series.last:
        raise ValueError(f"the values from {series.first} on do not end at {series.last} (within {_MAX_VALUES} values)")
    return values


_SOME = Field(min_length=1)


class Sweep(_Measurement):
    """One case for each value of one parameter: `<id>-<value>`.

    parameter   the parameter that is varied
    values      a list, or {from: 0, to: 1000, step: 50}, or {from: 16, to: 16384, factor: 2}
    varies      what the parameter belongs to: the template of the ruleset, or the traffic profile (its tunable). For
                survival also the load of all traffic, as a multiple of the baseline's capacity
    class_load  for survival: the load of the victim class, as a multiple of the baseline's capacity. The parameter is
                the load of the attack that is added, in the same unit, unless
    attack_load is given: then the parameter is one of the ruleset, and the attack has this load
    published   by value, what source documents printed
    quick       values that `fwlab run --quick` measures
    """

    parameter: str
    values: Annotated[
        list[Value],
        BeforeValidator(_written_out, json_schema_input_type=Annotated[list[Value], _SOME] | _Steps | _Factors),
        _SOME,
    ]
    varies: Literal["ruleset", "traffic", "load"] = "ruleset"
    class_load: float = Field(default=0.1, gt=0)
    attack_load: float | None = Field(default=None, ge=0)
    published: dict[str, list[Published]] = {}
    quick: list[Value] = []

    @model_validator(mode="after")
    def _known_values(self, info: ValidationInfo) -> Sweep:
        names = {str(value) for value in self.values}
        for name in [*self.published, *map(str, self.quick)]:
            if name not in names:
                raise ValueError(f"sweep {self.id}: {name} is not one of its values")
        if self.varies == "traffic" and self.traffic is None:
            raise ValueError(f"sweep {self.id}: it varies the traffic, but names none")
        known = known_metrics(info)
        survives = self.victim_class is not None and (known is None or known[self.metric].of_baseline)
        if self.attack_load is not None and (not survives or self.varies != "ruleset"):
            raise ValueError(f"sweep {self.id}: attack_load is for survival over a parameter of the ruleset")
        if self.varies == "load" and not (survives and all(self.values)):
            raise ValueError(f"sweep {self.id}: it varies the load, which is for survival and above zero")
        if self.victim_class is not None and not all(isinstance(v, int | float) and v >= 0 for v in self.values):
            raise ValueError(f"sweep {self.id}: survival needs numbers, multiples of the baseline's capacity")
        return self

    def total_load(self, value: Value) -> float | None:
        """The whole load of one value, as a multiple of the baseline's capacity; None if no class is to survive it."""
        if self.victim_class is None:
            return None
        if self.varies == "load":
            return float(value)
        return self.class_load + (float(value) if self.attack_load is None else self.attack_load)

    def traffic_for(self, value: Value) -> str | None:
        """Name of the traffic of one value: its own where the sweep varies the traffic."""
        return f"{self.traffic}-{self.parameter}-{value}" if self.varies == "traffic" else self.traffic

    def cases(self) -> list[Case]:
        """One case for each value of the parameter."""
        common = {name: getattr(self, name) for name in _Measurement.model_fields}
        return [
            Case(
                **{
                    **common,
                    "id": self.case_id(value),
                    "title": f"{self.title}, {self.parameter} {value}",
                    "parameters": {**self.parameters, self.parameter: value},
                    "traffic": self.traffic_for(value),
                },
                published=self.published.get(str(value), []),
                sweep=self.id,
                quick=value in self.quick,
                total_load=self.total_load(value),
            )
            for value in self.values
        ]

    def case_id(self, value: Value) -> str:
        """The id of the case with this value of the parameter."""
        return f"{self.id}-{str(value).lower().replace('.', '-')}"


class DeclaredCrossover(Strict):
    """Two sweeps of the same parameter whose curves cross, such as a list of rules and a set.

    slower     the sweep that becomes slower than the other as the parameter grows
    faster     the other
    published  where source documents saw them cross: `value`, in `unit` of the parameter
    """

    id: Identifier
    title: str
    slower: Identifier
    faster: Identifier
    published: list[Published] = []
