# SPDX-License-Identifier: GPL-2.0-or-later
"""A class of five with known marks, for gradings on lab03's machines.

Each student hands in every exercise, and each in another form: a folder, a .zip, a .tar.gz, what Moodle makes of a .zip
in its export, and an archive of which one exercise cannot be a ruleset.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from fwlab.checkout.project import Project, find_project, load_topology
from fwlab.grading.lab_rulesets import load_variants, variant_folder
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Exercise, Lab
from fwlab.model.variants import REFUSED
from fwlab.rulesets.files import rendered

LAB = "lab03-ipset"
#: Who hands in which rulesets, and in which form.
STUDENTS = {
    "ada": ("reference", "folder"),
    "bob": ("mistake", "zip"),
    "cyd": ("start", "tar.gz"),
    "Dora Ng_104_assignsubmission_file_": ("right", "moodle"),
    "eli": ("wrong", "zip"),
}
#: As marks name the fourth.
DORA = "Dora-Ng_104"
Files = dict[str, str]


def rulesets(project: Project, lab: Lab, exercise: Exercise, kind: str) -> Files:
    if kind in ("right", "wrong"):
        variants = load_variants(project, lab, exercise)
        wrong = [name for name, variant in variants.wrong.items() if REFUSED not in variant.fails]
        folder = variant_folder(lab, exercise, next(iter(variants.right)) if kind == "right" else wrong[0])
    else:
        folder = lab.folder / "rulesets" / exercise.id / kind
    return dict(rendered(folder, exercise.parameters, load_topology(project)))


def hand_in(top: Path, name: str, form: str, files: Files) -> None:
    """Write the files in this form; their names begin with that of the exercise."""
    data = {f"work/{path}": text.encode() for path, text in files.items()}
    if form == "folder":
        for path, text in files.items():
            (top / name / path).parent.mkdir(parents=True, exist_ok=True)
            (top / name / path).write_text(text)
    elif form == "tar.gz":
        top.mkdir(parents=True, exist_ok=True)
        with tarfile.open(top / f"{name}.tar.gz", "w:gz") as packed:
            for path, content in data.items():
                info = tarfile.TarInfo(path)
                info.size = len(content)
                packed.addfile(info, io.BytesIO(content))
    else:
        archive = top / f"{name}.zip" if form == "zip" else top / name / "my work.zip"
        archive.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for member, content in data.items():
                packed.writestr(member, content)


def make(top: Path, only: Sequence[str] = ()) -> dict[str, str]:
    """Write the class, in all exercises or only in these. Returns the expected verdicts by student/exercise."""
    project = find_project()
    lab = load_lab(project, LAB)
    exercises = [exercise for exercise in lab.exercises if not only or exercise.id in only]
    (top / "class").mkdir(parents=True)
    expected: dict[str, str] = {}
    for name, (kind, form) in STUDENTS.items():
        files: Files = {}
        who = DORA if form == "moodle" else name
        for exercise in exercises:
            own = rulesets(project, lab, exercise, kind)
            files |= {f"{exercise.id}/{path}": text for path, text in own.items()}
            expected[f"{who}/{exercise.id}"] = "pass" if kind in ("reference", "right") else "fail"
        if name == "cyd":
            files[f"{exercises[0].id}/run-me.sh"] = "reboot\n"  # refused before anything is loaded
        hand_in(top / "class", name, form, files)
    return expected
