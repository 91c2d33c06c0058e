# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as people read it: a table in the terminal, a page to hand in, a block for a guide."""

from __future__ import annotations

from pathlib import Path

from fwlab.host.atomic_write import write_atomically
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.html import page
from fwlab.report.markdown import figures_table
from fwlab.report.terminal import show

__all__ = ["figures_table", "show", "write_report"]


def write_report(lab: Lab, run: Run, folder: Path) -> Path:
    """Write report.html and run.json (the raw run, enough to judge it again) into `folder`.

    Returns the path of the page. Raises FwlabError naming the file if it cannot be written; an older
    report is then still whole.
    """
    text = page(lab, run)  # first, so that nothing is written if the page cannot be made
    write_atomically(folder / "run.json", run.model_dump_json(indent=1) + "\n")
    return write_atomically(folder / "report.html", text)
