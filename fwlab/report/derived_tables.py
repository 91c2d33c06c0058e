# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables for a lab's page that are computed from its published run: costs and their differences, and memory."""

from collections.abc import Callable
from pathlib import Path

from fwlab.checkout.project import find_project
from fwlab.judge.statistics import figure
from fwlab.measure import saved_runs
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run

#: The median of a case of the page's lab; for a case that counts connections, connections per second.
Median = Callable[[str], float]


def costs(page: str, rows: list[tuple[str, str | None, str]]) -> str:
    """Instructions per packet of a case, or what it costs more than another: (case, other case or None, meaning)."""
    median = medians(page, *published_runs(page))
    table = ["| cases | instructions | meaning |", "|---|---:|---|"]
    for case, less, meaning in rows:
        cost = 1e9 / median(case) - (1e9 / median(less) if less else 0)
        table.append(f"| `{case}`{f' − `{less}`' if less else ''} | {cost:.0f} | {meaning} |")
    return "\n" + "\n".join(table) + "\n"


def memory(page: str, rows: list[tuple[str, int, str]]) -> str:
    """Kernel memory of a case, and what that is for each of so many rules or entries; 0 leaves that out."""
    median = medians(page, *published_runs(page))
    table = ["| case | KiB | bytes for each | meaning |", "|---|---:|---:|---|"]
    for case, entries, meaning in rows:
        held = median(case)
        each = f"{held / entries:.0f}" if entries else ""
        table.append(f"| `{case}` | {held / 1024:.0f} | {each} | {meaning} |")
    return "\n" + "\n".join(table) + "\n"


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
