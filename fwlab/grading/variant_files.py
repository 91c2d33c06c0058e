# SPDX-License-Identifier: GPL-2.0-or-later
"""The variants of an exercise: rulesets/EXERCISE/variants.yml and one folder per entry."""

from pathlib import Path

from fwlab.checkout.project import Project, display_path, read_yaml
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.variants import Variants

DECLARED = "variants.yml"
FOLDERS = "variants"
#: What the names of variants begin with in marks.
RIGHT, WRONG = "right-", "wrong-"


def variant_folder(lab: Lab, exercise: Exercise, name: str) -> Path:
    """The folder that holds a variant's files."""
    return lab.folder / "rulesets" / exercise.id / FOLDERS / name


def load_variants(project: Project, lab: Lab, exercise: Exercise) -> Variants:
    """The exercise's variants; none if it has neither the file nor the folder.

    Raises BadInput, naming the file, if the two do not match.
    """
    path = lab.folder / "rulesets" / exercise.id / DECLARED
    folders = path.parent / FOLDERS
    where = display_path(project, path)
    if not path.exists():
        if folders.exists():
            raise BadInput(f"{where} is missing, but {FOLDERS}/ exists", f"list the folders of {FOLDERS}/ in {where}")
        return Variants()
    variants = read_yaml(project, path, Variants)
    try:
        variants.refuse_unknown({check.id for check in exercise.checks})
    except ValueError as error:
        raise BadInput(f"{where}: {error}", f"correct {where}") from error
    there = {item.name for item in folders.iterdir()} if folders.is_dir() else set()
    for name in variants.names:
        if not (folders / name).is_dir():
            raise BadInput(f"{where}: {name} has no folder {FOLDERS}/{name}", "add the folder or remove the entry")
    for name in sorted(there - set(variants.names)):
        raise BadInput(f"{where}: does not list {FOLDERS}/{name}", "add an entry to right or wrong")
    return variants
