# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of labs, what a lab's page asks, and the course map: which lab builds on which, from `needs.labs`."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill

from fwlab.checkout.project import Project, find_project, is_measured, lab_ids
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.student.workbook import predictions_of
from tools.markdown import block, table

#: Characters of a line of a page.
WIDTH = 118


def questions() -> str:
    """README.md's table of labs, in the order of their numbers. Raises BadInput for a faulty lab.yml."""
    return questions_of(find_project())


def questions_of(project: Project) -> str:
    """The same for any project."""
    rows = []
    for lab_id, lab in _labs(project).items():
        title = lab.title.replace("|", "\\|")
        title += "" if is_measured(project, lab_id) else " (not measured yet: no ranges, no marks)"
        rows.append((f"[{lab.id}](labs/{lab.id}/README.md)", title, str(lab.minutes), ", ".join(lab.sources)))
    return block(table(("lab", "question", "minutes:", "sources"), rows))


def predictions(page: str, *ids: str) -> str:
    """The questions of answers.yml that a lab's page asks, and how to answer them. Raises BadInput for an unknown one.

    ids  those of one part of the page (default: all); the first part says how to answer
    """
    project = find_project()
    lab = load_lab(project, Path(page).resolve().parent.name)
    asked = {one.id: one.question for one in predictions_of(project, lab)}
    if unknown := set(ids) - set(asked):
        raise BadInput(f"{page}: {lab.id} asks no question {min(unknown)}", f"correct {page}")
    how = (
        f"Record your answers with `fwlab predict {lab.id} QUESTION NUMBER` before you measure. Afterwards, the same "
        "command without the number compares and explains."
    )
    first = next(iter(asked))
    lines = [fill(how, WIDTH, break_on_hyphens=False), ""] if first in (ids or asked) else []
    items = (f"- `{name}`: {asked[name].strip()}" for name in ids or asked)
    lines += [fill(item, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for item in items]
    return block("\n".join(lines))


def order() -> str:
    """One row a lab: what it asks, which labs come first and which use it later, how long it takes."""
    labs = _labs(find_project())
    first = labs_before({lab_id: lab.needs.labs for lab_id, lab in labs.items()})
    rows = []
    for lab_id, lab in labs.items():
        later = [other for other, found in labs.items() if lab_id in found.needs.labs]
        title = lab.title.replace("|", "\\|")
        rows.append((_links([lab_id], whole=True), title, _links(first[lab_id]), _links(later), str(lab.minutes)))
    return block(table(("lab", "question", "do first", "leads to", "minutes:"), rows))


def tree() -> str:
    """The labs as a tree in plain text: each below the last of the labs that come before it."""
    needs = labs_before({lab_id: lab.needs.labs for lab_id, lab in _labs(find_project()).items()})
    return block("\n".join(["```text", *tree_lines(needs), "```"]))


def tree_lines(needs: Mapping[str, list[str]], below: str = "", indent: str = "") -> list[str]:
    """The lines of the part of the tree below a lab, or of all of it."""
    own = [lab_id for lab_id, named in needs.items() if (named[-1] if named else "") == below]
    lines = []
    for lab_id in own:
        last = lab_id == own[-1]
        branch = ("└── " if last else "├── ") if below else ""
        lines.append(f"{indent}{branch}{lab_id}")
        lines += tree_lines(needs, lab_id, indent + (("    " if last else "│   ") if below else ""))
    return lines


def labs_before(needs: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What each lab names itself, in the order of their numbers. Raises BadInput for an unknown lab or a circle."""
    for lab_id, named in needs.items():
        if unknown := [name for name in named if name not in needs]:
            raise BadInput(f"labs/{lab_id}/lab.yml: needs.labs: there is no lab {unknown[0]}", "fwlab list")
    _reject_circles(needs)
    return {lab_id: sorted(named) for lab_id, named in needs.items()}


def _reject_circles(needs: Mapping[str, list[str]]) -> None:
    done: set[str] = set()
    while len(done) < len(needs):
        free = {lab_id for lab_id, named in needs.items() if set(named) <= done} - done
        if not free:
            stuck = sorted(set(needs) - done)
            raise BadInput(
                f"needs.labs: these labs wait for each other: {', '.join(stuck)}", f"edit labs/{stuck[0]}/lab.yml"
            )
        done |= free


def _labs(project: Project) -> dict[str, Lab]:
    return {lab_id: load_lab(project, lab_id) for lab_id in lab_ids(project)}


def _links(lab_ids_: list[str], *, whole: bool = False) -> str:
    """Links from a page in guides/; by the lab's number alone, unless `whole`."""
    names = [lab_id if whole else lab_id.partition("-")[0] for lab_id in lab_ids_]
    return ", ".join(f"[{name}](../labs/{of}/README.md)" for name, of in zip(names, lab_ids_, strict=True)) or "–"
