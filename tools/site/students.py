# SPDX-License-Identifier: GPL-2.0-or-later
"""The students' site: that of the pages in a students' bundle of all labs, so without a solution."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from fwlab.checkout.project import Project, find_project, lab_ids
from fwlab.grading.student_bundle import bundle_files
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput

_ENTRY = re.compile(r"^(?P<indent> +)- (?:(?P<title>[^:\n]+): *)?(?P<page>\S+\.md|LABS)?$")


def students_site_command(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it.")]) -> None:
    """Build the site for students: every lab, no answers."""
    build_students_site(find_project(), folder)
    typer.echo(f"open {folder}/index.html")


def build_site(root: Path, to: Path) -> None:
    """Build the site of a checkout, as `make guides` does. Raises BadInput with what MkDocs says."""
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--site-dir", str(to.absolute())]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BadInput(f"{root}: the site cannot be built\n{done.stderr}", "make guides")


def build_students_site(project: Project, to: Path) -> None:
    """Build it from a copy of what students get, with the same configuration."""
    files = bundle_files(project, [load_lab(project, lab) for lab in lab_ids(project)])
    with tempfile.TemporaryDirectory(prefix="fwlab-site-") as made:
        root = Path(made)
        for name, (content, _) in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        shutil.copytree(project.root / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        config = (project.root / "mkdocs.yml").read_text(encoding="utf-8")
        (root / "mkdocs.yml").write_text(navigation_of(config, files), encoding="utf-8")
        build_site(root, to)


def navigation_of(config: str, there: Collection[str]) -> str:
    """mkdocs.yml with only those entries of its navigation that lead to these files."""
    head, nav, entries = config.partition("\nnav:\n")
    lines = entries.splitlines()
    found = [_ENTRY.match(line) for line in lines]
    kept = [line for line, entry in zip(lines, found, strict=True) if not entry or _leads(entry["page"], there)]
    return head + nav + "\n".join(_without_empty(kept)) + "\n"


def _leads(page: str | None, there: Collection[str]) -> bool:
    return page in (None, "LABS") or page in there


def _without_empty(lines: list[str]) -> list[str]:
    """Without headings that have no page left below them."""

    def indent(place: int) -> int:
        return len(lines[place]) - len(lines[place].lstrip()) if place < len(lines) else 0

    return [line for place, line in enumerate(lines) if not line.endswith(":") or indent(place + 1) > indent(place)]
