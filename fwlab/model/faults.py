# SPDX-License-Identifier: GPL-2.0-or-later
"""Plain data as a model, and what is wrong with it in words: one line `file: field: fault` for each fault."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fwlab.model.errors import BadInput
from fwlab.model.lab_file import advice

Model = TypeVar("Model", bound=BaseModel)
#: Faults of one file that an error lists, one per line.
MAX_FAULTS = 20


def validated(
    data: object, name: str, model: type[Model], known: Mapping[str, Any] | None = None, hint: str = ""
) -> Model:
    """The data as this model. Raises BadInput with one line for each of the first MAX_FAULTS faults."""
    try:
        return model.model_validate(data, context=known)
    except ValidationError as error:
        errors = error.errors()
        faults = [f"{name}: {_fault(fault, data)}" for fault in errors[:MAX_FAULTS]]
        if len(errors) > MAX_FAULTS:
            faults.append(f"{name}: and {len(errors) - MAX_FAULTS} more faults")
        raise BadInput("\n".join(faults), hint or f"fix {name}, then `fwlab list`") from error


def _fault(fault: Mapping[str, Any], data: object) -> str:
    where = _place(fault["loc"], data)
    if fault["type"] == "extra_forbidden":
        if instead := advice(fault["loc"]):
            return f"{where}: {instead}"
        return f"{where}: there is no such field"
    if fault["type"] == "missing":
        return f"{where}: this field is missing"
    if fault["type"] in ("model_type", "dict_type"):
        return f"{where}: fields belong here" if where else "the fields are missing"
    what = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "string_pattern_mismatch":
        what = f"{fault['input']} does not have the form {fault['ctx']['pattern']}"
    if fault["type"] == "too_short":
        what = f"there must be at least {fault['ctx']['min_length']}"
    return f"{where}: {what}" if where else what


def _place(parts: tuple[str | int, ...], data: Any) -> str:
    """cases.raw-drop.title: an item of a list by its id if it has one, else by its index from 0."""
    names = []
    for part in parts:
        try:
            data = data[part]
        except (TypeError, LookupError):
            data = None
        named = isinstance(part, int) and isinstance(data, dict) and "id" in data
        names.append(str(data["id"] if named else part))
    return ".".join(names)
