# SPDX-License-Identifier: GPL-2.0-or-later
"""The generated parts of the pages: blocks that cog runs, numbers inside sentences (inline_figures.py), pictures."""

from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project
from fwlab.model.errors import BadInput
from fwlab.report.inline_figures import with_figures

GLOBS = ("*.md", "guides/*.md", "labs/*/README.md", "labs/*/instructor.md", "engine/README.md", "results/README.md")


def all_pages(project: Project) -> list[Path]:
    """Every page that may have generated parts."""
    return sorted(path for glob in GLOBS for path in project.root.glob(glob))


def rendered(page: Path) -> str:
    """The page with its generated parts made anew. Raises BadInput with page and line if a part cannot be made."""
    from cogapp.cogapp import Cog, CogError  # type: ignore[import-untyped]  # only authors have it

    try:
        text: str = Cog().process_string(page.read_text(encoding="utf-8"), str(page))
    except CogError as error:
        raise BadInput(str(error), f"correct the cog markers of {page.name}") from error
    return with_figures(text, page)


def refresh(project: Project) -> list[Path]:
    """Rewrite the pages and the pictures that are stale. Returns their paths."""
    from fwlab.report.pictures import pictures_of  # importing matplotlib takes a third of a second; few commands draw

    stale: list[Path] = []
    for page in all_pages(project):
        text = rendered(page)
        if text != page.read_text(encoding="utf-8"):
            stale.append(write_atomically(page, text))
        for path, drawn in pictures_of(page).items():
            if not path.exists() or drawn != path.read_text(encoding="utf-8"):
                stale.append(write_atomically(path, drawn))
    return stale
