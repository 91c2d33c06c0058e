# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON Schemas of the YAML files that authors, instructors and owners of hosts write, for their editors.

They come from the models that read these files, and from what is registered: a plug-in's metric is a known name.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from fwlab.checkout.atomic_write import write_atomically
from fwlab.grading.course import Course
from fwlab.judge.checks import CHECKS
from fwlab.metrics.registry import METRICS
from fwlab.model.check import Check
from fwlab.model.declared import with_names
from fwlab.model.lab import Lab
from fwlab.model.lab_file import schema_as_written
from fwlab.model.ranges import Ranges
from fwlab.model.ruleset import rules_kinds, settings_kinds
from fwlab.model.topology import Topology
from fwlab.model.variants import Variants
from fwlab.rulesets.registry import KINDS
from fwlab.student.hints import Hints
from fwlab.student.workbook import Questions
from fwlab.testbed.host_file import HostFile

#: By file, without its suffix, the model that reads it.
MODELS: dict[str, type[BaseModel]] = {
    "lab": Lab,
    "ranges": Ranges,
    "hints": Hints,
    "answers": Questions,
    "variants": Variants,
    "course": Course,
    "topology": Topology,
    "host": HostFile,
}
#: "name, name  text" in the docstring of a model: what its fields are.
_FIELD = re.compile(r"^(\w+(?:, \w+)*)  +(\S.*(?:\n +\S.*)*)", re.MULTILINE)


class _AsDocumented(GenerateJsonSchema):
    """Says of each field what the docstrings say, and of no name that it is a title."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: an editor shows the name."""
        return False

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        """No key of another form than that of the keys."""
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": False} if "patternProperties" in made else made

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """With a description of each field."""
        made = super().model_schema(schema)
        said = dict(_fields_said(schema["cls"]))
        for one in (made, *made.get("anyOf", ())):
            one.pop("title", None)
            for name, field in one.get("properties", {}).items():
                if name in said:
                    field.setdefault("description", said[name])
            if "description" in one:
                one["description"] = " ".join(one["description"].partition("\n\n")[0].split())
        return made


def _fields_said(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Fields and what the docstrings of the model, and of those that it extends, say about them."""
    for one in reversed(model.__mro__):
        for names, text in _FIELD.findall(inspect.cleandoc(one.__doc__ or "")):
            yield from ((name, " ".join(text.split())) for name in names.split(", "))


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(schema_generator=_AsDocumented)


def schema_of(name: str) -> dict[str, Any]:
    """The schema of NAME.yml."""
    complete = _schema(MODELS[name])
    if name == "lab":
        kinds = {kind: CHECKS[kind].check for kind in CHECKS if CHECKS[kind].check is not Check}
        complete = schema_as_written(complete, {kind: _schema(check) for kind, check in kinds.items()})
    names = {"settings": settings_kinds(KINDS), "rules": rules_kinds(KINDS), "metrics": METRICS, "check_kinds": CHECKS}
    return {"$schema": GenerateJsonSchema.schema_dialect, **with_names(complete, names)}


def schema_of_rows(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a file that is a list of these."""
    schema = _schema(model)
    parts = schema.pop("$defs", {})
    return {"$schema": GenerateJsonSchema.schema_dialect, "$defs": parts, "type": "array", "items": schema}


def write_schemas(folder: Path, more: Mapping[str, dict[str, Any]] = MappingProxyType({})) -> list[Path]:
    """Write NAME.schema.json of each file into the folder; the paths of those that were stale.

    more  schemas, by file, of those that are read elsewhere
    """
    written = []
    for name, schema in {**{name: schema_of(name) for name in MODELS}, **more}.items():
        path, text = folder / f"{name}.schema.json", json.dumps(schema, indent=1) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            written.append(write_atomically(path, text))
    return written
