# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables for a lab's page that are computed from its published run: costs, their differences, and compared ratios."""

from collections.abc import Callable
from pathlib import Path

from fwlab.host.project import find_project
from fwlab.judge.statistics import figure
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run

#: The median of a case of the page's lab; for a case that counts connections, connections per second.
Median = Callable[[str], float]


def costs(page: str, rows: list[tuple[str, str | None, str]]) -> str:
    """Instructions per packet of a case, or what it costs more than another: (case, other case or None, meaning)."""
    median = medians(page, *published_run(page))
    table = ["| cases | instructions | meaning |", "|---|---:|---|"]
    for case, less, meaning in rows:
        cost = 1e9 / median(case) - (1e9 / median(less) if less else 0)
        table.append(f"| `{case}`{f' − `{less}`' if less else ''} | {cost:.0f} | {meaning} |")
    return "\n" + "\n".join(table) + "\n"


def compare(page: str, rows: list[tuple[str, str, float, str, str]]) -> str:
    """Published ratios beside ours: (source, what it is, published ratio, our case, our base case)."""
    median = medians(page, *published_run(page))
    table = ["| source | ratio | published | ours | our cases | difference |", "|---|---|---:|---:|---|---:|"]
    for source, what, published, case, base in rows:
        ours = median(case) / median(base)
        cells = [source, what, f"{published:g}", f"{ours:.3g}", f"`{case}` / `{base}`"]
        table.append(f"| {' | '.join(cells)} | {(ours / published - 1) * 100:+.0f} % |")
    return "\n" + "\n".join(table) + "\n"


def published_run(page: str) -> tuple[Lab, Run]:
    """The lab whose README.md `page` is, and its newest full run."""
    project, lab_id = find_project(), Path(page).resolve().parent.name
    run = load_run(max((project.root / "results" / lab_id).glob("*-full.json")), lab_id)
    return load_lab(project, lab_id), run


def medians(page: str, lab: Lab, run: Run) -> Median:
    """The median of any case of the run. Raises BadInput, naming the page, for a case that it lacks."""

    def median(case: str) -> float:
        measured = run.case(case)
        found = figure(measured, METRICS[lab.cases[case].metric], run.testbed) if measured else None
        if found is None:
            raise BadInput(f"{page}: the published run has no figure of {case}", f"fwlab list {lab.id}")
        return found.median

    return median
