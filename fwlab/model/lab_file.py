# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab.yml leaves out is filled in here: defaults, series of sweeps, checks by name.

Plain data in, plain data out. Nothing is validated: what does not fit stays as it is, and the model refuses it. Filling
in a second time changes nothing.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from fwlab.model.check import BOUNDS, STANDARD_CHECKS
from fwlab.model.metric import MAIN_METRIC, Metrics


@dataclass(frozen=True)
class _Context:
    """What is the same for all of a lab's checks."""

    lab: dict[Any, Any]
    defaults: dict[Any, Any]
    own: dict[Any, Any]
    metrics: Metrics


def completed(data: Any, metrics: Metrics | None) -> Any:
    """A lab.yml as read from YAML, with nothing left out. `metrics`: the registry."""
    if not isinstance(data, dict):
        return data
    lab = dict(data)
    defaults = _mapping(lab.get("defaults"))
    context = _Context(lab, defaults, _mapping(lab.get("checks")), metrics or {})
    for section in ("cases", "sweeps"):
        if isinstance(lab.get(section), list):
            items = [one for item in lab[section] for one in _series(item)]
            lab[section] = [_with_traffic(item, context) for item in items]
    if context.own:
        lab["checks"] = {name: _check(check, context) for name, check in context.own.items()}
    if isinstance(lab.get("expectations"), list):
        lab["expectations"] = [_with_ratio_to(item, lab.get("baseline")) for item in lab["expectations"]]
    if isinstance(lab.get("exercises"), list):
        lab["exercises"] = [_exercise(exercise, context) for exercise in lab["exercises"]]
    return lab


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _series(item: Any) -> list[Any]:
    """A case or sweep for each entry of `series`, which has what differs; the rest is common to all of them."""
    if not isinstance(item, dict) or not isinstance(item.get("series"), list):
        return [item]
    common = {name: value for name, value in item.items() if name != "series"}
    return [_merged(common, one) if isinstance(one, dict) else one for one in item["series"]]


def _merged(common: dict[Any, Any], one: dict[Any, Any]) -> dict[Any, Any]:
    merged = {**common, **one}
    if isinstance(common.get("parameters"), dict) and isinstance(one.get("parameters"), dict):
        merged["parameters"] = {**common["parameters"], **one["parameters"]}
    return merged


def _with_traffic(item: Any, context: _Context) -> Any:
    """The default traffic for a case or sweep that names none, unless all its metrics do without."""
    if "traffic" not in context.defaults or not isinstance(item, dict):
        return item
    also = item.get("also")
    names = [item.get("metric", MAIN_METRIC), *(also if isinstance(also, list) else [])]
    metrics = [context.metrics.get(str(name)) for name in names]
    if all(metric is not None and "none" in metric.traffic for metric in metrics):
        return item
    return {"traffic": context.defaults["traffic"], **item}


def _with_ratio_to(expectation: Any, baseline: Any) -> Any:
    """The baseline for an expectation of capacity that names no other case."""
    if not isinstance(expectation, dict) or expectation.get("metric", MAIN_METRIC) != MAIN_METRIC:
        return expectation
    if not isinstance(baseline, str):  # one for each system: the expectation says which
        return expectation
    return {"ratio_to": baseline, **expectation}


def _exercise(exercise: Any, context: _Context) -> Any:
    if isinstance(exercise, dict):
        of_all = {name: context.defaults[name] for name in ("load_dependent", "stateful") if name in context.defaults}
        exercise = {**of_all, **exercise}
    if not isinstance(exercise, dict) or not isinstance(exercise.get("checks"), list):
        return exercise
    # A list within the list names several of the lab's checks on one line.
    checks = [one for check in exercise["checks"] for one in (check if isinstance(check, list) else [check])]
    return {**exercise, "checks": [_check(check, context) for check in checks]}


def _check(check: Any, context: _Context) -> Any:
    check = _used(check, context.own, frozenset())
    if not isinstance(check, dict) or "use" in check:
        return check
    check = dict(check)
    if "kernel" in context.defaults:
        check.setdefault("kernel", context.defaults["kernel"])
    metric = context.metrics.get(str(check.get("metric")))
    if metric is not None and metric.needs_clock and "source" in context.defaults:
        check.setdefault("source", context.defaults["source"])  # such limits come from measurements
    check.setdefault("source", [f"labs/{context.lab.get('id')}/README.md"])
    if isinstance(check["source"], list):
        check["source"] = [_under_results(name, context.lab) for name in check["source"]]
    return check


def _used(check: Any, own: Mapping[Any, Any], seen: frozenset[str]) -> Any:
    """The check with what it takes over from the one that it uses; with `use` left in where that is unknown."""
    if isinstance(check, str):
        check = {"use": check}
    if not isinstance(check, dict) or not isinstance(check.get("use"), str):
        return check
    name = check["use"]
    if name in seen or not (name in own or name in STANDARD_CHECKS):
        return check
    base = _used(own[name], own, seen | {name}) if name in own else STANDARD_CHECKS[name]
    if not isinstance(base, Mapping):
        return check
    given = {key: value for key, value in check.items() if key != "use"}
    replaced = BOUNDS if any(bound in given for bound in BOUNDS) else ()
    return {**{key: value for key, value in base.items() if key not in replaced}, **given}


def _under_results(name: Any, lab: dict[Any, Any]) -> Any:
    """The name of a file alone means the one in results/LAB; S1 to S5 are no files."""
    alone = isinstance(name, str) and "." in name and "/" not in name
    return f"results/{lab.get('id')}/{name}" if alone else name


def schema_as_written(complete: dict[str, Any], checks: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The JSON Schema of a lab.yml as authors write it, from that of a complete one.

    checks  by kind of check, the schema of its fields, where these are not those of the usual kind
    """
    schema = deepcopy(complete)
    parts, properties = schema["$defs"], schema["properties"]
    for section, name in (("cases", "Case"), ("sweeps", "Sweep")):
        properties[section]["items"] = _either(
            {"required": ["series"]}, _series_schema(parts[name]), {"$ref": f"#/$defs/{name}"}
        )
    parts["Check"] = _check_schema(parts["Check"])
    for kind, fields in checks.items():
        parts["Check"] = _either(
            {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, _check_schema(fields), parts["Check"]
        )
    named = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Check"}]}
    properties["checks"]["patternProperties"] = dict.fromkeys(properties["checks"]["patternProperties"], named)
    several = {"type": "array", "items": named}
    parts["Exercise"]["properties"]["checks"]["items"] = {"anyOf": [*named["anyOf"], several]}
    return schema


def _either(condition: dict[str, Any], then: dict[str, Any], otherwise: dict[str, Any]) -> dict[str, Any]:
    return {"if": condition, "then": then, "else": otherwise}


def _series_schema(one: dict[str, Any]) -> dict[str, Any]:
    """What cases or sweeps have in common, and what differs; either may lack what the other has."""
    part = {key: value for key, value in one.items() if key != "required"}
    return {**part, "properties": {**part["properties"], "series": {"type": "array", "items": part}}}


def _check_schema(check: dict[str, Any]) -> dict[str, Any]:
    """A check may take over from another one, has its bounds in two forms, and its source from the lab."""
    bound = {"type": "number"}
    fields = {**check["properties"], "use": {"type": "string"}, "at_least": bound, "at_most": bound}
    needed = [name for name in check["required"] if name not in ("source", "between")]
    bounds = [{"required": [name]} for name in BOUNDS]
    return {
        **{key: value for key, value in check.items() if key != "required"},
        "properties": fields,
        "allOf": [
            {"not": {"required": ["between"], "anyOf": [one for one in bounds if one["required"] != ["between"]]}},
            {"anyOf": [{"required": ["use"]}, {"required": needed, "anyOf": bounds}]},
        ],
    }


_IN_RANGES = "ranges.yml has the numbers; list the cases under `cases`, then run `make ranges LAB=LAB`"
_OF_A_CHECK = "a check has a class; here this field is called victim_class"
#: By section of lab.yml: fields that belong elsewhere, or that are there in another form.
_MISPLACED = {
    "cases": {"class": _OF_A_CHECK, "series": "this must be a list: what differs, case by case"},
    "sweeps": {"class": _OF_A_CHECK, "series": "this must be a list: what differs, sweep by sweep"},
    "expectations": {
        "virtual": _IN_RANGES,
        "ratio": _IN_RANGES,
        "hosts": _IN_RANGES,
        "kernel": "ranges.yml has the kernel of each range; remove this field",
    },
}


def advice(place: tuple[str | int, ...]) -> str | None:
    """What to write instead of the unknown field at `place`, such as ("cases", 0, "class"); None: nothing is known."""
    return _MISPLACED.get(str(place[0]), {}).get(str(place[-1])) if len(place) > 1 else None
