# SPDX-License-Identifier: GPL-2.0-or-later
"""The course's own pages, as Markdown that the page shows: without what only their authors need, with links that lead
to pages here. What a student wrote never comes this way."""

import posixpath
import re
from pathlib import Path

from fwlab.checkout.project import Project, lab_ids
from fwlab.model.lab import Lab

#: Comments hold the functions of numbers and tables.
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_SECTION = re.MULTILINE | re.DOTALL
_DETAILS = re.compile(r"^<details>$", re.MULTILINE)
#: Extensions of markdown2 that the pages need.
EXTRAS = ["fenced-code-blocks", "tables", "header-ids", "markdown-in-html", "cuddled-lists"]
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}


def shown(project: Project, path: Path) -> str:
    """A page of the checkout as Markdown for the browser."""
    text = _DETAILS.sub('<details markdown="1">', _COMMENT.sub("", path.read_text(encoding="utf-8")))
    folder = path.parent.relative_to(project.root).as_posix()
    return _LINK.sub(lambda link: _linked(project, folder, link), text)


def exercise_text(project: Project, lab: Lab, exercise: str) -> str:
    """What the lab's page says about an exercise, as Markdown, up to its answer; "" if it says nothing."""
    path = lab.folder / "README.md"
    if not path.is_file():
        return ""
    found = re.search(
        rf"^### {re.escape(exercise)}\b[^\n]*\n(.*?)(?=^#{{1,3}} |^<details|\Z)", shown(project, path), _SECTION
    )
    return found[1] if found else ""


def _linked(project: Project, folder: str, link: re.Match[str]) -> str:
    """The link as it leads from the page in this folder; its text alone where there is nothing to show."""
    picture, words, target = link.groups()
    if target.startswith("#"):
        return link[0]
    path, _, anchor = target.partition("#")
    place = posixpath.normpath(posixpath.join(folder, path)).split("/")
    match place:
        case ["labs", lab, "pictures", name] if picture and Path(name).suffix in PICTURES:
            return f"![{words}](/pictures/{lab}/{name})"
        case ["labs", lab, "README.md"] if lab in lab_ids(project):
            address = f"/lab/{lab}"
        case ["guides", name] if name.endswith(".md") and (project.root / "guides" / name).is_file():
            address = f"/guide/{name.removesuffix('.md')}"
        case _:
            return words
    return f"[{words}]({address}{'#' + anchor if anchor else ''})"


def picture_of(project: Project, lab: str, name: str) -> Path | None:
    """A picture of a lab's page; None if there is none of that name."""
    if lab not in lab_ids(project) or Path(name).name != name or Path(name).suffix not in PICTURES:
        return None
    path = project.labs / lab / "pictures" / name
    return path if path.is_file() and not path.is_symlink() else None
