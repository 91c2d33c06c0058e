# SPDX-License-Identifier: GPL-2.0-or-later
"""Publish a run: keep it under results/ and put its figures into the lab's guide, and its quick cases into README.md.

    python -m fwlab.cli.publish LAB [RUN.json]        (without a file: the lab's latest, reports/LAB/run.json)

What a page prints as measured then has its raw results in the project, and comes from nowhere else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fwlab.host.project import Project, shown
from fwlab.measure.saved_runs import command
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report import figures_table, replace_block, write_atomically

#: The lab whose first figures README.md shows.
SHOWN_IN_README = "lab03-ipset"


def publish(project: Project, lab: Lab, run: Run) -> list[Path]:
    """Write results/LAB/DATE-full.json and the pages' blocks. Raises BadInput for a run with doubts."""
    doubtful = [case.id for case in run.cases if case.problems or case.refused]
    if doubtful:
        raise BadInput(f"the run has cases in doubt: {', '.join(doubtful)}", f"fwlab run {lab.id}")
    folder = project.root / "results" / lab.id
    kept = folder / f"{run.started[:10]}-full.json"
    written = [write_atomically(kept, run.model_dump_json(indent=1) + "\n")]
    source = f"\n\nRaw results: `{shown(project, kept)}`."
    written.append(_fill(lab.folder / "README.md", figures_table(lab, run) + source))
    if lab.id == SHOWN_IN_README:
        quick = run.model_copy(update={"cases": [c for c in run.cases if lab.cases[c.id].quick]})
        written.append(_fill(project.root / "README.md", figures_table(lab, quick) + source))
    return written


def _fill(page: Path, block: str) -> Path:
    return write_atomically(page, replace_block(page.read_text(encoding="utf-8"), block))


if __name__ == "__main__":
    sys.exit(command("publish", __doc__.splitlines()[0], publish))
