# SPDX-License-Identifier: GPL-2.0-or-later
"""Autograders for platforms that run an instructor's own program on what students hand in.

Gradescope   https://gradescope-autograders.readthedocs.io/en/latest/specs: a .zip with setup.sh and run_autograder
Classroom 50 https://github.com/foundation50/classroom50/wiki/Advanced-Autograding: a folder with autograder.py
"""

import re
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project
from fwlab.grading.student_bundle import archive, bundle_files, zip_archive
from fwlab.grading.student_repository import filled_in
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput
from fwlab.model.printable import printable

_URL = re.compile(r"(https|file)://[A-Za-z0-9._~/%+:@-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def write_gradescope(
    project: Project, lab_id: str, output: Path, boxes: str, sha256: str, course: Path | None = None
) -> None:
    """Write the .zip that Gradescope takes. Raises BadInput.

    boxes   where an archive (.tar) of what `make boxes EXPORT=folder` wrote can be got, and its SHA-256
    course  course.yml. Students do not see what is in an autograder
    """
    if not _URL.fullmatch(boxes):
        raise BadInput(f"{printable(boxes)} is no address of an archive", "give one that begins with https://")
    if not _SHA256.fullmatch(sha256):
        raise BadInput(f"{printable(sha256)} is no SHA-256", "sha256sum of the archive")
    words = {"LAB": lab_id, "BOXES": boxes, "SHA256": sha256}
    name = f"fwlab-{lab_id}"
    files = {
        file: (filled_in(project, f"autograders/gradescope/{file}", words)[0], 0o755)
        for file in ("setup.sh", "run_autograder")
    }
    files[f"{name}.tar.gz"] = (archive(name, bundle_files(project, [load_lab(project, lab_id)])), 0o644)
    if course is not None:
        files["course.yml"] = (course.read_bytes(), 0o600)
    write_atomically(output, zip_archive(files))


def write_classroom50(project: Project, lab_id: str, folder: Path, image: str) -> None:
    """Write the folder that goes to CLASSROOM/autograders/ASSIGNMENT of a classroom50 repository. Raises BadInput."""
    words = {"LAB": load_lab(project, lab_id).id, "IMAGE": image}
    for file, template in (("autograder.py", "autograders/classroom50/autograder.py"), ("grade", "repository/grade")):
        write_atomically(folder / file, filled_in(project, template, words)[0])
