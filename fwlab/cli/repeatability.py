# SPDX-License-Identifier: GPL-2.0-or-later
"""How far figures repeat: within one boot, over fresh boots, on an idle host and on one that is kept busy.

    python -m fwlab.cli.repeatability LAB [CASE...]

Writes results/LAB/DATE-repeatability.json: every trial, and the two spreads that the method page quotes. The
machines are made anew for every boot; nothing is judged.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fwlab.host.project import find_project, load_lab, load_topology
from fwlab.judge.statistics import Figure, figure
from fwlab.measure.context import RunContext
from fwlab.measure.plan import case_task
from fwlab.measure.session import open_session
from fwlab.model.errors import FwlabError
from fwlab.model.events import Event, ItemEnded, StepStarted
from fwlab.model.metric import Metric
from fwlab.model.results import Run
from fwlab.report import write_atomically
from fwlab.testbed.selection import TestbedRequest

CASES = ("raw-drop", "ipset-1000", "nft-rules-1024")
BOOTS = 3
TRIALS = 10

_SPIN = "import os\np = os.getppid()\nwhile os.getppid() == p:\n    for _ in range(10**6): pass\n"


@contextlib.contextmanager
def busy_host() -> Iterator[None]:
    """One spinning process for every core, until left."""
    spinners = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def measure(context: RunContext, cases: list[str]) -> dict[str, list[Run]]:
    """{"idle": [a run for each boot], "busy": [...]}; every boot measures both."""
    runs: dict[str, list[Run]] = {"idle": [], "busy": []}
    tasks = [case_task(context, context.lab.cases[name], TRIALS) for name in cases]
    for boot in range(BOOTS):
        _tell(StepStarted(f"boot {boot + 1} of {BOOTS}"))
        with open_session(context, _tell) as session:
            session.measure_cases(tasks)
            runs["idle"].append(session.run.model_copy(deep=True))
            session.run.cases.clear()
            with busy_host():
                session.measure_cases(tasks)
            runs["busy"].append(session.run.model_copy(deep=True))
    return runs


def document(runs: dict[str, list[Run]], cases: list[str]) -> dict:
    """Spreads as ratios: within a boot (the largest), over the boots' medians, and over all of both hosts."""
    found = {}
    for case in cases:
        figures = {
            kind: [figure(run.case(case), Metric.CAPACITY, run.testbed) for run in some] for kind, some in runs.items()
        }
        medians = [f.median for some in figures.values() for f in some if f is not None]
        found[case] = {
            kind: {
                "medians_pps": [round(f.median, 1) for f in some if f],
                "largest_spread_in_a_boot": max((f.spread for f in some if f), default=None),
                "spread_over_boots": Figure([f.median for f in some if f]).spread if any(some) else None,
            }
            for kind, some in figures.items()
        }
        found[case]["spread_over_all_medians"] = Figure(medians).spread if medians else None
    raw = {kind: [run.model_dump(mode="json") for run in some] for kind, some in runs.items()}
    command = "python -m fwlab.cli.repeatability"
    return {"how": f"{command}: {BOOTS} boots, {TRIALS} trials a case", "spreads": found, "runs": raw}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lab")
    parser.add_argument("cases", nargs="*", default=list(CASES))
    chosen = parser.parse_args()
    try:
        project = find_project()
        lab = load_lab(project, chosen.lab)
        context = RunContext(project, load_topology(project), lab, TestbedRequest("virtual"))
        result = document(measure(context, chosen.cases), chosen.cases)
    except FwlabError as error:
        print(f"repeatability: {error}", file=sys.stderr)
        return error.exit_code
    folder = Path(project.root / "results" / lab.id)
    path = folder / f"{datetime.date.today().isoformat()}-repeatability.json"
    write_atomically(path, json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["spreads"], indent=1))
    print(f"written: {path}")
    return 0


def _tell(event: Event) -> None:
    match event:
        case StepStarted(what):
            print(f"{what} ...", file=sys.stderr)
        case ItemEnded(item, words, _):
            print(f"  {item}: {words}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
