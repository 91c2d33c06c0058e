# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks: the conditions that an exercise sets for a ruleset."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import (
    Field,
    SerializeAsAny,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from fwlab.model.declared import one_of
from fwlab.model.expectation import Range, Rationale
from fwlab.model.metric import MetricName, Metrics

#: By name, the fields of the check; a lab's `use: NAME` adds to them or replaces them.
STANDARD_CHECKS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Full delivery is 0.9995 to 1.0005: a packet that only one end counted within the trial is not a loss.
        "all-delivered": {
            "metric": "delivered",
            "between": (0.9995, 1.0005),
            "why": "This traffic is allowed, so every packet must arrive.",
            "pass": "All packets of the class {class} arrive.",
            "fail": "Packets of the class {class} are missing at the sink. Which rule do they match?",
        },
        "none-delivered": {
            "metric": "delivered",
            "between": (0, 0),
            "why": "This traffic is forbidden. One packet at the sink is one too many.",
            "pass": "No packet of the class {class} arrives.",
            "fail": "Packets of the class {class} still arrive.",
        },
        # The DUT counts these packets, but not by class: a few of its own may be among them.
        "all-returned": {
            "metric": "returned",
            "between": (0.9, 1),
            "why": "Hosts behind the firewall send packets, too. What is not tracked must be accepted both ways.",
            "pass": "All packets of the class {class} leave by the link that they came from.",
            "fail": "Packets of the class {class} are dropped on their way back. Which rule accepts that direction?",
        },
        "behaves-alike": {
            "kind": "same",
            "metric": "differences",
            "between": (0, 0),
            "why": "A ruleset may only be exchanged for one that does the same.",
            "pass": "No packet that was drawn becomes something else than with the start.",
            "fail": "A packet becomes something else than with the start (start / yours):",
        },
        "entries-loaded": {
            "metric": "entries",
            "why": "The list is part of the exercise, so all of it must be loaded.",
            "pass": "The whole list is loaded.",
            "fail": "Entries are missing. Compare your ruleset with the list.",
        },
    }
)


BOUNDS = ("between", "at_least", "at_most")
#: The kind of a check that names none.
DEFAULT_KIND = "range"


class Check(Rationale):
    """One condition on the measurement of a student's ruleset.

    kind      how it is judged: the name of a kind of check, which may have more fields (fwlab/judge/checks.py). The
              usual one, `range`: the metric's figure, or its ratio to a case, lies in a range
    metric    what is measured
    class     the traffic class, for `delivered` and `survival`
    between   the inclusive range [lowest, highest], in the metric's unit. Write `at_least` or `at_most` (or both)
              instead where that reads better
    ratio_to  a case: the range is for the ratio to it, measured in the same session. Without it, limits of capacity,
              connections and load_time hold on the virtual testbed only

    In lab.yml a check may start from another one: `use: NAME` takes over everything that the check NAME says and
    the entry does not. NAME is one of the lab's own `checks` or of fwlab/model/check.py. `kernel` and
    `source` come from the lab's `defaults`.
    """

    kind: Annotated[str, Field(json_schema_extra=one_of("check_kinds"))] = DEFAULT_KIND
    metric: MetricName
    between: Range
    traffic_class: str | None = Field(default=None, alias="class")
    ratio_to: str | None = None

    @property
    def id(self) -> str:
        """The check's name within its exercise."""
        return f"{self.metric}-{self.traffic_class}" if self.traffic_class else self.metric

    @property
    def metrics(self) -> list[str]:
        """Every metric that it needs of the measurement."""
        return [self.metric]

    @property
    def cases(self) -> list[str]:
        """Every case that it needs of the same session."""
        return [self.ratio_to] if self.ratio_to else []

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {"use": data}
        if not isinstance(data, dict):
            return data
        if "use" in data:
            standard = ", ".join(STANDARD_CHECKS)
            raise ValueError(f"unknown check {data['use']}: declare it under `checks`, or use one of: {standard}")
        return _with_class_named(_with_range(data))

    def reject_unknown(
        self,
        where: str,
        classes: set[str],
        metrics: dict[str, set[str]],
        known: Metrics,
        *,
        of_connections: bool = False,
    ) -> None:
        """Check every name. `metrics`: by case id, what that case measures; `known`: the registry of metrics.

        of_connections  whether TCP connections are played, which need no class

        Raises ValueError naming the class or the case.
        """
        by_class = self.metric in known and known[self.metric].by_class
        if by_class and self.traffic_class is None and not of_connections:
            raise ValueError(f"{where}: {self.metric} needs a class")
        if self.traffic_class is not None and self.traffic_class not in classes:
            raise ValueError(f"{where}: unknown class {self.traffic_class}")
        if self.ratio_to is not None and self.ratio_to not in metrics:
            raise ValueError(f"{where}: unknown case {self.ratio_to}")
        if self.ratio_to is not None and self.metric not in metrics[self.ratio_to]:
            raise ValueError(f"{where}: case {self.ratio_to} does not measure {self.metric}")


def _with_range(data: dict[Any, Any]) -> dict[Any, Any]:
    """`at_least` and `at_most` as `between`."""
    sides = {name: data[name] for name in ("at_least", "at_most") if name in data}
    if not sides:
        return data
    if "between" in data:
        raise ValueError("give either between, or at_least and at_most")
    for name, value in sides.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name}: {str(value)[:40]!r} is not a number")
    rest = {name: value for name, value in data.items() if name not in sides}
    return {**rest, "between": (sides.get("at_least", -math.inf), sides.get("at_most", math.inf))}


def _with_class_named(data: dict[Any, Any]) -> dict[Any, Any]:
    """The texts with the class's name in place of {class}."""
    name = data.get("class", data.get("traffic_class"))
    if not isinstance(name, str):
        return data
    texts = {
        key: data[key].replace("{class}", name) for key in ("why", "pass", "fail") if isinstance(data.get(key), str)
    }
    return {**data, **texts}


def _of_kind(data: Any, as_check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Check:
    """The entry with the fields of its kind, where the reader gives the registry of kinds."""
    context: Any = info.context
    kinds = context.get("check_kinds") if isinstance(context, Mapping) else None
    name = data.get("kind", DEFAULT_KIND) if isinstance(data, dict) else DEFAULT_KIND
    if kinds is None or name == DEFAULT_KIND:
        checked: Check = as_check(data)
        return checked
    if name not in kinds:
        raise ValueError(f"unknown kind of check {str(name)[:40]!r}; known kinds: {', '.join(kinds)}")
    fields: type[Check] = kinds[name].check
    return fields.model_validate(data, context=info.context)


#: A check of any kind, as an entry of lab.yml.
AnyCheck = Annotated[SerializeAsAny[Check], WrapValidator(_of_kind)]
