# SPDX-License-Identifier: GPL-2.0-or-later
"""The generated parts of the pages: blocks that cog runs, numbers inside sentences (numbers.py), pictures."""

from pathlib import Path

import typer
from cogapp.cogapp import Cog, CogError  # type: ignore[import-untyped]

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, display_path, find_project
from fwlab.cli.schemas import schema_of_rows, write_schemas
from fwlab.model.errors import BadInput
from tools.man_page import write_man_page
from tools.numbers import with_numbers
from tools.pictures import pictures_of
from tools.published_ratios import Comparison
from tools.results_index import write_index

GLOBS = (
    *("*.md", "guides/*.md", "engine/README.md", "results/README.md"),
    *("labs/*/README.md", "labs/*/explained.md", "labs/*/instructor.md"),
)


def pages_command() -> None:
    """Renew all that is generated: parts of pages, pictures, results/index.yml, the manual page and schemas/."""
    project = find_project()
    rest = [*write_index(project), *write_man_page(project), *write_every_schema(project)]
    for page in [*refresh(project), *rest]:
        typer.echo(f"written: {display_path(project, page)}")


def write_every_schema(project: Project) -> list[Path]:
    """Those of `fwlab author schemas`, and that of the file that only the pages read. Returns what was stale."""
    return write_schemas(project.root / "schemas", {"published": schema_of_rows(Comparison)})


def all_pages(project: Project) -> list[Path]:
    """Every page that may have generated parts."""
    return sorted(path for glob in GLOBS for path in project.root.glob(glob))


def rendered(page: Path) -> str:
    """The page with its generated parts renewed. Raises BadInput with page and line if a part cannot be made."""
    try:
        text: str = Cog().process_string(page.read_text(encoding="utf-8"), str(page))
    except CogError as error:
        raise BadInput(str(error), f"correct the cog markers of {page.name}") from error
    return with_numbers(text, page)


def refresh(project: Project) -> list[Path]:
    """Rewrite the pages and the pictures that are stale. Returns their paths."""
    stale: list[Path] = []
    for page in all_pages(project):
        text = rendered(page)
        if text != page.read_text(encoding="utf-8"):
            stale.append(write_atomically(page, text))
        for path, drawn in pictures_of(page).items():
            if not path.exists() or drawn != path.read_text(encoding="utf-8"):
                stale.append(write_atomically(path, drawn))
    return stale
