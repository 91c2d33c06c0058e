# SPDX-License-Identifier: GPL-2.0-or-later
"""The generated parts of the pages: cog finds them in the Markdown and runs what they name."""

from __future__ import annotations

from pathlib import Path

from fwlab.host.atomic_write import write_atomically
from fwlab.host.project import Project

GLOBS = ("*.md", "guides/*.md", "labs/*/README.md", "engine/README.md", "results/README.md")


def all_pages(project: Project) -> list[Path]:
    """Every page that may have generated parts."""
    return sorted(path for glob in GLOBS for path in project.root.glob(glob))


def rendered(page: Path) -> str:
    """The page with its generated parts made anew. cogapp's own errors name the page and the line."""
    from cogapp import Cog  # type: ignore[import-untyped]  # only authors have it

    text: str = Cog().process_string(page.read_text(encoding="utf-8"), str(page))
    return text


def refresh(project: Project) -> list[Path]:
    """Rewrite the pages that are stale. Returns their paths."""
    stale = []
    for page in all_pages(project):
        text = rendered(page)
        if text != page.read_text(encoding="utf-8"):
            stale.append(write_atomically(page, text))
    return stale
