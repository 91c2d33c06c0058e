# SPDX-License-Identifier: GPL-2.0-or-later
"""Types that other models share."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

_SERIES = r"(?:[A-Za-z]+ )?\d+\.\d+"
#: "6.1" of Linux, "FreeBSD 15.1" of another system.
KernelSeries = Annotated[str, Field(pattern=f"^{_SERIES}$")]


def series_of(release: str) -> str | None:
    """The series of 6.1.0-56-cloud-amd64 or of "FreeBSD 15.1-RELEASE-p1"; None if the release has none."""
    found = re.match(rf"{_SERIES}(?=[.-]|$)", release)
    return found[0] if found else None


Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
#: A word of a template or an argument of a profile. What YAML calls true is 1.
Value = Annotated[int | float | str, WithJsonSchema({"type": ["number", "string", "boolean"]})]


#: Changes the JSON Schema of a model: `json_schema_extra` of its configuration.
SchemaChange = Callable[[dict[str, Any]], None]


def or_else(short: dict[str, Any]) -> SchemaChange:
    """The schema of a model whose validator also takes a short form, which `short` describes."""

    def change(schema: dict[str, Any]) -> None:
        long = dict(schema)
        schema.clear()
        schema["anyOf"] = [short, long]

    return change


def exactly_one(*names: str) -> SchemaChange:
    """The schema of a model whose validator wants just one of these fields."""
    return lambda schema: schema.update(oneOf=[{"required": [name]} for name in names])


#: In a schema, instead of the names that a registry has: its own name.
REGISTERED = "registered"


def one_of(registry: str) -> SchemaChange:
    """The schema of a name that must be in this registry, whose names `with_names` puts in."""
    return lambda schema: schema.update({REGISTERED: registry})


def with_names(schema: Any, names: Mapping[str, Collection[str]]) -> Any:
    """The schema with the names of each registry in place of the registry's own."""
    if isinstance(schema, list):
        return [with_names(one, names) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: with_names(value, names) for key, value in schema.items() if key != REGISTERED}
    return {**made, "enum": sorted(names[schema[REGISTERED]])} if REGISTERED in schema else made


def together(*names: str) -> SchemaChange:
    """The schema of a model whose validator wants all of these fields or none."""
    return lambda schema: schema.update(dependentRequired={name: [n for n in names if n != name] for name in names})


class Frozen(BaseModel):
    """Immutable data; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Strict(Frozen):
    """A declaration, whose numbers are all finite."""

    model_config = ConfigDict(populate_by_name=True, allow_inf_nan=False)


def first_fault(error: ValidationError) -> str:
    """The first fault of a document that no person writes, behind its place. Both may quote a stranger's file."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return f"{place}: {what}" if place else what
