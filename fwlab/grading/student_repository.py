# SPDX-License-Identifier: GPL-2.0-or-later
"""A template of a repository for each student: a lab's pages, work/, and what opens and grades it in the image.

It has no check and no limit that decides: those are the image's. provision/image/grade, which is in the image, grades;
what is here only calls it, for a student to see. Whoever may push may change it, so a mark is made from a clone.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

from fwlab.checkout.atomic_write import write_errors_as
from fwlab.checkout.project import Project
from fwlab.grading.student_bundle import bundle_files, without_lost_links
from fwlab.measure.individual_tasks import read_tasks
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput
from fwlab.model.printable import printable

#: Files of the repository by the names of their templates in guides/repository. In them, @WORD@ is filled in.
FILES = {
    "README.md": "README.md",
    "grade.yml": ".github/workflows/grade.yml",
    "grade": ".github/grade",
    "shell": ".github/shell",
    "gitlab-ci.yml": ".gitlab-ci.yml",
    "devcontainer.json": ".devcontainer/devcontainer.json",
}
#: A name of an image, with a registry, a tag and a digest or without.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
TASKS = "tasks.yml"


def write_repository(project: Project, lab_id: str, folder: Path, image: str, tasks: Path | None = None) -> None:
    """Write the template into a new or empty folder. Raises BadInput.

    image  its name, where those who grade can get it
    tasks  the numbers drawn for each repository, if tasks are individual
    """
    files = repository_files(project, lab_id, image, tasks)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is not an empty folder", "name a new folder")
    with write_errors_as(folder):
        for name, (content, program) in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if program:
                path.chmod(0o755)


def repository_files(
    project: Project, lab_id: str, image: str, tasks: Path | None = None
) -> dict[str, tuple[bytes, bool]]:
    """What is in the template, by path: contents, and whether it is a program. Raises BadInput."""
    lab = load_lab(project, lab_id)
    if not lab.whole.exercises:
        raise BadInput(f"{lab.id} has no exercise to hand in", "name another lab")
    bundled = bundle_files(project, [lab])
    pages = (f"labs/{lab.id}/README.md", f"labs/{lab.id}/pictures/", "guides/", "LICENSE")
    found = {name: file for name, file in bundled.items() if name.startswith(pages)}
    work = f"labs/{lab.id}/work/README.md"
    found["work/README.md"] = (_moved(bundled[work][0].decode(), work, "work/README.md").encode(), False)
    found[".gitignore"] = (b"graded/\n", False)
    if tasks is not None:
        if lab.id not in read_tasks(tasks).tasks:
            raise BadInput(f"{tasks}: it has no tasks of {lab.id}", f"fwlab grades tasks {lab.id} …")
        found[TASKS] = (tasks.read_bytes(), False)
    words = {
        "LAB": lab.id,
        "TITLE": lab.title,
        "EXERCISE": lab.whole.exercises[0].id,
        "IMAGE": image,
        "TASKS": f' --{TASKS.removesuffix(".yml")} "$CI_PROJECT_DIR/{TASKS}"' if tasks else "",
    }
    for template, name in FILES.items():
        found[name] = filled_in(project, f"repository/{template}", words)
    for name, (content, program) in found.items():
        if name.endswith(".md"):
            found[name] = (without_lost_links(content.decode(), name, found).encode(), program)
    return found


def filled_in(project: Project, template: str, words: Mapping[str, str]) -> tuple[bytes, bool]:
    """A template in guides/ with these words for @WORD@, and whether it is a program. Raises BadInput."""
    if (image := words.get("IMAGE")) is not None and not _IMAGE.fullmatch(image):
        raise BadInput(f"{printable(image)} is no name of an image", "give one as docker takes it")
    path = project.root / "guides" / template
    if not path.is_file():
        raise BadInput(f"{project.root}: not a checkout of the project, which has the templates", "git clone it")
    text = re.sub(r"@([A-Z0-9]+)@", lambda word: words[word[1]], path.read_text(encoding="utf-8"))
    return text.encode(), bool(path.stat().st_mode & 0o100)


def _moved(text: str, before: str, after: str) -> str:
    """The page with its relative links as they are from its new place."""

    def moved(link: re.Match[str]) -> str:
        path, mark, anchor = link[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return link[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(before), path))
        return f"{link[1]}({posixpath.relpath(there, posixpath.dirname(after))}{mark}{anchor})"

    return re.sub(r"(\])\(([^)\s]+)\)", moved, text)
