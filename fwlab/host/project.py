# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkout: where its files are, and its YAML files as models."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fwlab.host.yaml_files import read_yaml_file
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.lab_file import completed
from fwlab.model.ranges import Ranges
from fwlab.model.renamed_fields import advice
from fwlab.model.topology import Topology

Model = TypeVar("Model", bound=BaseModel)
#: Faults of one file that an error lists, one per line.
MOST_FAULTS = 20


@dataclass(frozen=True)
class Project:
    """The checkout. `state`: what belongs to this checkout alone, such as its SSH key and the list of its boxes."""

    root: Path

    @property
    def labs(self) -> Path:
        """The folder with a folder per lab."""
        return self.root / "labs"

    @property
    def state(self) -> Path:
        """What `vagrant up` and sessions record; not part of the repository."""
        return self.root / ".fwlab"


def find_project(start: Path | None = None) -> Project:
    """The checkout that contains `start` (default: the working directory), else the one of this package."""
    candidates = [start or Path.cwd(), Path(__file__)]
    for candidate in candidates:
        here = candidate.resolve()
        for folder in (here, *here.parents):
            if (folder / "topology.yml").is_file() and (folder / "labs").is_dir():
                return Project(folder)
    raise BadInput(
        f"no topology.yml at or above {candidates[0]}", "cd into the checkout of the Firewall Performance Lab"
    )


def load_topology(project: Project) -> Topology:
    """topology.yml of this checkout. Raises BadInput."""
    return read_yaml(project, project.root / "topology.yml", Topology)


def lab_ids(project: Project) -> list[str]:
    """Labs are found, not listed: every labs/labNN-…/lab.yml is one."""
    return sorted(path.parent.name for path in project.labs.glob("lab[0-9][0-9]-*/lab.yml"))


def is_measured(project: Project, lab_id: str) -> bool:
    """Whether results/ has a full run of the lab. Without one the lab has no ranges and judges nobody."""
    return any((project.root / "results" / lab_id).glob("*-full.json"))


def load_lab(project: Project, lab_id: str, known: Mapping[str, object]) -> Lab:
    """The lab in labs/<lab_id>, its names checked against `known`: registries by concept, such as "metrics".

    Raises BadInput naming the file and the field.
    """
    there = lab_ids(project)
    if lab_id not in there:
        raise BadInput(f"unknown lab {lab_id}; there are: {', '.join(there) or 'none'}", "fwlab list")
    path = project.labs / lab_id / "lab.yml"
    lab = read_yaml(project, path, Lab, known)
    if lab.id != lab_id:
        where = shown(project, path)
        raise BadInput(f"{where}: id is {lab.id}, its folder is {lab_id}", "make the two the same")
    lab._folder = path.parent
    return lab.with_ranges(load_ranges(project, lab, known))


def load_ranges(project: Project, lab: Lab, known: Mapping[str, object]) -> Ranges:
    """The lab's ranges.yml; empty if there is none yet. Raises BadInput naming the field."""
    path = lab.folder / "ranges.yml"
    if not path.exists():
        return Ranges()
    name = shown(project, path)
    hint = f"restore {name}, or delete it and run `make ranges LAB={lab.id}`"
    return validated(read_yaml_file(path, name, hint), name, Ranges, known, hint)


def read_yaml(project: Project, path: Path, model: type[Model], known: Mapping[str, object] | None = None) -> Model:
    """Read and validate. Raises BadInput with one line `file: field: what is wrong` for each fault."""
    name = shown(project, path)
    data = read_yaml_file(path, name)
    return validated(data, name, model, known)


def validated(
    data: object, name: str, model: type[Model], known: Mapping[str, Any] | None = None, hint: str = ""
) -> Model:
    """The data as this model. Raises BadInput with one line for each of the first MOST_FAULTS faults."""
    if model is Lab:
        data = completed(data, (known or {}).get("metrics"))  # faults then name items of the completed lists
    try:
        return model.model_validate(data, context=known)
    except ValidationError as error:
        errors = error.errors()
        faults = [f"{name}: {_fault(fault, data)}" for fault in errors[:MOST_FAULTS]]
        if len(errors) > MOST_FAULTS:
            faults.append(f"{name}: and {len(errors) - MOST_FAULTS} more faults")
        raise BadInput("\n".join(faults), hint or f"fix {name}, then `fwlab list`") from error


def shown(project: Project, path: Path) -> str:
    """The path as the user would type it from the top of the checkout."""
    return str(path.relative_to(project.root)) if path.is_relative_to(project.root) else str(path)


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
