# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure a lab with the plug-in's metric on made-up nodes, judge it, and print every report as JSON.

python metric_run.py CHECKOUT LAB
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fwlab.checkout.project import Project, load_topology
from fwlab.judge.checks import judge_exercise
from fwlab.measure.labs import load_lab
from fwlab.measure.measurer import Measurer
from fwlab.measure.plan import case_spec, lab_part_spec
from fwlab.measure.saved_runs import run_in
from fwlab.metrics.measurement import Nodes
from fwlab.metrics.registry import METRICS
from fwlab.report.files import RENDERERS
from fwlab.report.model import build_model
from tests.fakes.factories import a_run


class MadeUpNodes:
    """A DUT that misses its cache twice per packet and rule, and an engine that reaches it."""

    def __init__(self) -> None:
        self.misses, self.rules = 0, 0

    def reset(self, next_ruleset: object = None) -> list[str]:
        self.rules = 0
        return []

    def must_admit_logins(self) -> None:
        """They are admitted."""

    def load(self, files: list[Any], *, each: bool, times: int = 1, timed: bool = True) -> list[list[float]]:
        self.rules = sum(file.text.count("drop") for file in files)
        return [[0.5]] * times

    def ask(self, operation: str, answer: type, *, timeout: float) -> dict[str, int]:
        return {"misses": self.misses}

    def start(self, *, load: float, count: int) -> SimpleNamespace:
        self.misses += 2 * count * self.rules
        return SimpleNamespace(wait=lambda timeout: None)

    def ignore(self, *_: object) -> dict[str, Any]:
        return {}

    use = set_flows = absorb_all = flows = ignore

    def plays_packets(self, _traffic: str) -> bool:
        return True

    def of_play(self, _traffic: str, _play: int, _first: int | None) -> MadeUpNodes:
        return self


def main(checkout: Path, lab_id: str) -> None:
    project = Project(checkout)
    lab = load_lab(project, lab_id)
    context: Any = SimpleNamespace(project=project, topology=load_topology(project), lab=lab)
    made_up: Any = MadeUpNodes()
    measurer = Measurer(Nodes(made_up, made_up, made_up, made_up, lab.classes, lambda *_: contextlib.nullcontext(), 1))
    run = a_run([measurer.measure(case_spec(context, case, 3)) for case in lab.cases.values()], lab=lab.id)
    exercise = lab.exercises[0]
    run.exercises.append(measurer.measure(lab_part_spec(context, exercise, "reference", 3)))
    saved = run.model_dump_json()
    run = run_in(saved, "run.json", "")
    model = build_model(lab, run)
    verdicts = judge_exercise(exercise, run.exercises[0], run, METRICS)
    document = {
        "metrics": list(METRICS),
        "values": {case.id: case.extra for case in run.cases},
        "cases": {row.id: row.outcome for row in model.cases},
        "checks": {verdict.check: [verdict.outcome, verdict.value] for verdict in verdicts},
        "reports": {name: renderer.render(model) for name, renderer in RENDERERS.items()},
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
