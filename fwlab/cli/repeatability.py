# SPDX-License-Identifier: GPL-2.0-or-later
"""How well figures repeat: within one boot, across fresh boots, on an idle host and on a busy one."""

import contextlib
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fwlab.host.atomic_write import write_atomically
from fwlab.host.project import Project
from fwlab.judge.statistics import Figure, figure
from fwlab.measure.context import RunContext
from fwlab.measure.plan import case_spec, chosen_cases
from fwlab.measure.session import open_session
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Case
from fwlab.model.errors import BadInput
from fwlab.model.events import Listener, StepStarted
from fwlab.model.lab import Lab
from fwlab.model.results import Run

BOOTS = 3
TRIALS = 10

_SPIN = "import os\np = os.getppid()\nwhile os.getppid() == p:\n    for _ in range(10**6): pass\n"


def benchmark_cases(lab: Lab, names: list[str]) -> list[Case]:
    """The named cases; without names, those that lab.yml marks `quick`. Raises BadInput if there are none."""
    cases = chosen_cases(lab, names, quick=True)
    if not cases:
        raise BadInput(
            f"{lab.id} marks no case as quick",
            f"name cases: fwlab author repeatability {lab.id} CASE...",
        )
    return cases


@contextlib.contextmanager
def busy_host() -> Iterator[None]:
    """Keep every core of the host busy with one spinning process each."""
    spinners = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def measure(context: RunContext, cases: list[Case], tell: Listener) -> dict[str, list[Run]]:
    """{"idle": [one run per boot], "busy": [...]}; every boot measures both."""
    runs: dict[str, list[Run]] = {"idle": [], "busy": []}
    specs = [case_spec(context, case, TRIALS) for case in cases]
    for boot in range(BOOTS):
        tell(StepStarted(f"boot {boot + 1} of {BOOTS}"))
        with open_session(context, tell) as session:
            session.measure_cases(specs)
            runs["idle"].append(session.run.model_copy(deep=True))
            session.run.cases.clear()
            with busy_host():
                session.measure_cases(specs)
            runs["busy"].append(session.run.model_copy(deep=True))
    return runs


def document(runs: dict[str, list[Run]], cases: list[Case]) -> dict[str, Any]:
    """Spreads as ratios, by case: within a boot (the largest), across boots, and across all boots of both hosts."""
    raw = {kind: [run.model_dump(mode="json") for run in some] for kind, some in runs.items()}
    return {
        "how": f"fwlab author repeatability: {BOOTS} boots, {TRIALS} trials per case",
        "spreads": {case.id: _spreads(runs, case) for case in cases},
        "runs": raw,
    }


def _spreads(runs: dict[str, list[Run]], case: Case) -> dict[str, Any]:
    metric = METRICS[case.metric]
    by_host: dict[str, list[Figure]] = {}
    for kind, some in runs.items():
        found = [figure(measured, metric, run.testbed) for run in some if (measured := run.case(case.id))]
        by_host[kind] = [one for one in found if one is not None]
    spreads: dict[str, Any] = {
        kind: {
            f"medians_{metric.unit}": [round(f.median, 1 if metric.unit == "pps" else 6) for f in figures],
            "largest_spread_in_a_boot": max((f.spread for f in figures), default=None),
            "spread_over_boots": _spread([f.median for f in figures]),
        }
        for kind, figures in by_host.items()
    }
    spreads["spread_over_all_medians"] = _spread([f.median for figures in by_host.values() for f in figures])
    return spreads


def _spread(medians: list[float]) -> float | None:
    return Figure(medians).spread if medians else None


def write_document(project: Project, lab: Lab, result: dict[str, Any]) -> Path:
    """Write results/LAB/DATE-repeatability.json; its path."""
    path = project.root / "results" / lab.id / f"{datetime.date.today().isoformat()}-repeatability.json"
    return write_atomically(path, json.dumps(result, indent=1) + "\n")
