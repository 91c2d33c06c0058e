# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkout: where its files are, and its YAML files as models; what is wrong with them, one line a fault."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fwlab import __version__
from fwlab.checkout.version import reject_other_version
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.model.errors import BadInput
from fwlab.model.lab_file import advice
from fwlab.model.port_numbers import chosen_shift
from fwlab.model.topology import Topology

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
        other = any(fault["type"] == "extra_forbidden" and not advice(fault["loc"]) for fault in errors)
        instead = f" (a newer lab needs a newer fwlab; this is {__version__})" if other else ""
        raise BadInput("\n".join(faults), hint or f"fix {name}, then `fwlab list`{instead}") from error


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
    """The checkout that contains `start` (default: the working directory), else the one of this package.

    A folder that `fwlab init` made is a checkout in this sense. Raises BadInput if another version made it.
    """
    candidates = [start or Path.cwd(), Path(__file__)]
    for candidate in candidates:
        here = candidate.resolve()
        for folder in (here, *here.parents):
            if (folder / "topology.yml").is_file() and (folder / "labs").is_dir():
                reject_other_version(folder)
                return Project(folder)
    raise BadInput(f"no labs at or above {candidates[0]}", "cd into a folder that has them; `fwlab init DIR` makes one")


def load_topology(project: Project) -> Topology:
    """topology.yml of this checkout. Raises BadInput."""
    topology = read_yaml(project, project.root / "topology.yml", Topology)
    return topology.model_copy(update={"port_shift": chosen_shift(project.state)})


def lab_ids(project: Project) -> list[str]:
    """Labs are found, not listed: every labs/labNN-…/lab.yml is one."""
    return sorted(path.parent.name for path in project.labs.glob("lab[0-9][0-9]-*/lab.yml"))


def lab_named(project: Project, name: str) -> str:
    """The lab of this name, of which the beginning is enough: lab03. Raises BadInput."""
    there = lab_ids(project)
    meant = [lab for lab in there if lab == name or lab.startswith(f"{name}-")]
    if len(meant) != 1:
        raise BadInput(f"unknown lab {name}; there are: {', '.join(there) or 'none'}", "fwlab list")
    return meant[0]


def is_measured(project: Project, lab_id: str) -> bool:
    """Whether results/ has a published run of the lab. Without one the lab has no ranges and gives no verdicts."""
    return any((project.root / "results" / lab_id).glob("published*"))


def read_yaml(project: Project, path: Path, model: type[Model], known: Mapping[str, object] | None = None) -> Model:
    """Read and validate. Raises BadInput with one line `file: field: what is wrong` for each fault."""
    name = display_path(project, path)
    data = read_yaml_file(path, name)
    return validated(data, name, model, known)


def display_path(project: Project, path: Path) -> str:
    """The path as the user would type it from the top of the checkout."""
    return str(path.relative_to(project.root)) if path.is_relative_to(project.root) else str(path)
