# SPDX-License-Identifier: GPL-2.0-or-later
"""What cog writes into a lab's page from a run that cannot stand among the published ones (see published_runs)."""

from pathlib import Path

from fwlab.checkout.project import display_path, find_project
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.report.model import build_model
from fwlab.report.renderers.markdown import figures_table


def figures_from(page: str, result: str) -> str:
    """The table of one run, of another kernel or testbed. `page`: the lab's README.md. `result`: in results/LAB.

    Raises BadInput for a file that is no run of this lab.
    """
    project = find_project()
    lab = load_lab(project, Path(page).resolve().parent.name)
    path = project.root / "results" / lab.id / result
    table = figures_table(build_model(lab, load_run(path, lab.id)))
    return f"\n{table}\n\nRaw results: `{display_path(project, path)}`.\n"
