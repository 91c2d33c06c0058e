# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkout: where its files are, and its YAML files as models."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.model.errors import BadInput
from fwlab.model.faults import Model, validated
from fwlab.model.topology import Topology


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
    """Whether results/ has a published run of the lab. Without one the lab has no ranges and gives no verdicts."""
    return any((project.root / "results" / lab_id).glob("published*.json"))


def read_yaml(project: Project, path: Path, model: type[Model], known: Mapping[str, object] | None = None) -> Model:
    """Read and validate. Raises BadInput with one line `file: field: what is wrong` for each fault."""
    name = display_path(project, path)
    data = read_yaml_file(path, name)
    return validated(data, name, model, known)


def display_path(project: Project, path: Path) -> str:
    """The path as the user would type it from the top of the checkout."""
    return str(path.relative_to(project.root)) if path.is_relative_to(project.root) else str(path)
