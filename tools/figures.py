# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of figures for the pages, from results/: of a lab's published runs, of one run, and of the generators.

`page` is always the lab's README.md, as cog names it.
"""

import json
from collections.abc import Callable
from pathlib import Path

from fwlab.checkout.project import Project, display_path, find_project, is_measured
from fwlab.checkout.raw_results import raw_results, read_document
from fwlab.judge.statistics import figure
from fwlab.measure import saved_runs
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Case
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.report.model import build_model
from fwlab.report.renderers.markdown import figures_table
from fwlab.traffic.streams import FCS
from tools.markdown import block, table

#: The median of a case of the page's lab; for a case that counts connections, connections per second.
Median = Callable[[str], float]


def figures(page: str) -> str:
    """The tables of a lab's published runs; a lab without one has none."""
    return _figures(find_project(), Path(page).resolve().parent.name)


def figures_of(page: str, *cases: str) -> str:
    """The same for some cases alone. Raises BadInput for a case that the lab does not have."""
    project = find_project()
    lab = load_lab(project, Path(page).resolve().parent.name)
    for case in cases:
        if case not in lab.cases:
            raise BadInput(f"{page}: {lab.id} has no case {case}", f"fwlab list {lab.id}")
    return _figures(project, lab.id, lambda case: case.id in cases)


def quick_figures(lab_id: str) -> str:
    """The same for the cases that the lab marks as quick."""
    return _figures(find_project(), lab_id, lambda case: case.quick)


def figures_from(page: str, result: str) -> str:
    """The table of a run that cannot stand among the published ones: of another kernel or testbed.

    `result` is a file in results/LAB.

    Raises BadInput for a file that is no run of this lab.
    """
    project = find_project()
    lab = load_lab(project, Path(page).resolve().parent.name)
    path = project.root / "results" / lab.id / result
    run = saved_runs.load_run(path, lab.id)
    return block(f"{figures_table(build_model(lab, run))}\n\nRaw results: `{display_path(project, path)}`.")


def costs(page: str, rows: list[tuple[str, str | None, str]]) -> str:
    """Instructions per packet of a case, or what it costs more than another: (case, other case or None, meaning)."""
    median = medians(page, *published_runs(page))
    cells = []
    for case, less, meaning in rows:
        cost = 1e9 / median(case) - (1e9 / median(less) if less else 0)
        cells.append((f"`{case}`{f' − `{less}`' if less else ''}", f"{cost:.0f}", meaning))
    return block(table(("cases", "instructions:", "meaning"), cells))


def memory(page: str, rows: list[tuple[str, int, str]]) -> str:
    """Kernel memory of a case, and what that is for each of the rules or entries, if their number is not 0."""
    median = medians(page, *published_runs(page))
    cells = []
    for case, entries, meaning in rows:
        held = median(case)
        each = f"{held / entries:.0f}" if entries else ""
        cells.append((f"`{case}`", f"{held / 1024:.0f}", each, meaning))
    return block(table(("case", "KiB:", "bytes for each:", "meaning"), cells))


def ceiling(result: str, rows: list[tuple[str, str]]) -> str:
    """A run of `engine/bench ceiling` in results/engine: (title, sender) of each row. Its sizes exclude the FCS."""
    medians = json.loads(read_document(find_project().root / "results" / "engine" / result))["medians"]
    sizes = sorted(medians, key=int)
    heads = ["thousand frames/s at the far end, by frame size", *(f"{int(size) + FCS}:" for size in sizes)]
    cells = [[title, *(f"{medians[size][sender]['median_pps'] / 1e3:.0f}" for size in sizes)] for title, sender in rows]
    return block(table(heads, cells))


def published_runs(page: str) -> tuple[Lab, list[Run]]:
    """The lab whose README.md `page` is, and its newest figures, on each of its systems."""
    project = find_project()
    lab = load_lab(project, Path(page).resolve().parent.name)
    return lab, saved_runs.published_runs(project, lab)


def medians(page: str, lab: Lab, runs: list[Run], metric: str = "") -> Median:
    """The median of any case of the runs, in the case's own metric or in this one.

    Raises BadInput, naming the page, for a case that they lack.
    """

    def median(case: str) -> float:
        both = ((run, measured) for run in runs if (measured := run.case(case)))
        found = next((figure(one, METRICS[metric or lab.cases[case].metric], run.testbed) for run, one in both), None)
        if found is None:
            raise BadInput(f"{page}: the published run has no figure of {case}", f"fwlab list {lab.id}")
        return found.median

    return median


def profiled(lab_id: str, case: str) -> tuple[Run, Measured]:
    """The newest profile of this case: of results/LAB/*-profile.json.gz, or else of the lab's published run.

    Raises StopIteration if there is none.
    """
    project = find_project()
    profiles = reversed(raw_results(project, f"{lab_id}/*-profile"))
    runs = [saved_runs.load_run(path, lab_id) for path in profiles]
    runs += saved_runs.published_runs(project, load_lab(project, lab_id))
    return next((run, found) for run in runs if (found := run.case(case)) and found.stacks)


def _figures(project: Project, lab_id: str, shows: Callable[[Case], bool] | None = None) -> str:
    if not is_measured(project, lab_id):
        return block("No figures yet: `make figures` publishes a full run.")
    lab = load_lab(project, lab_id)
    paths = saved_runs.published_files(project, lab)
    runs = saved_runs.published_runs(project, lab)
    if shows is not None:
        runs = [_some(lab, run, shows) for run in runs]
    raw = " and ".join(f"`{display_path(project, path)}`" for path in paths)
    return block(f"{figures_table(build_model(lab, runs[0], runs[1:]))}\n\nRaw results: {raw}.")


def _some(lab: Lab, run: Run, shows: Callable[[Case], bool]) -> Run:
    return run.model_copy(update={"cases": [case for case in run.cases if shows(lab.cases[case.id])]})
