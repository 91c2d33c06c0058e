# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON documents that `fwlab run … --json` and `fwlab check … --json` print: plain data for scripts.

Numbers are in the metric's own unit (pps, s, ratio, count). JSON has no infinity: an open side of a
range is null. A verdict of null means that nothing was expected and nothing is in doubt.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome, Verdict
from fwlab.report.crossovers import Crossed, crossings
from fwlab.report.formatting import cost_unit
from fwlab.report.report_rows import MetricRow, Row, case_rows, exercise_rows, fidelity, overall_outcome

Document = dict[str, Any]


def run_document(lab: Lab, run: Run, verdicts: list[Verdict] | None = None) -> Document:
    """The cases of a run. `verdicts` come from judge_cases; they are judged here if not given."""
    rows = case_rows(lab, run, verdicts)
    cases = [_case(lab, run, row) for row in rows]
    crossed = [_crossing(found) for found in crossings(lab, run)]
    return {**_session(run), "cases": cases, "crossings": crossed, "verdict": _word(overall_outcome(rows))}


def check_document(lab: Lab, run: Run, verdicts: list[Verdict] | None = None) -> Document:
    """The exercises of a run. `verdicts` come from judge_exercise; they are judged here if not given."""
    rows = exercise_rows(lab, run, verdicts)
    exercises = [_exercise(lab, run, row) for row in rows]
    return {**_session(run), "exercises": exercises, "verdict": _word(overall_outcome(rows))}


def verdict_document(verdict: Verdict) -> Document:
    data = verdict.model_dump(mode="python")
    data["metric"], data["outcome"] = verdict.metric, verdict.outcome.value
    for side in ("value", "low", "high"):
        data[side] = _finite(data[side])
    return data


def _session(run: Run) -> Document:
    return {
        "lab": run.lab,
        "started": run.started,
        "commit": run.commit,
        "fwlab": run.fwlab,
        "seed": run.seed,
        "testbed": run.testbed.model_dump(mode="json"),
        "host": run.host.model_dump(mode="json"),
        "dut": run.dut.model_dump(mode="json"),
    }


def _case(lab: Lab, run: Run, row: Row) -> Document:
    main, *others = [_metric(lab, run, m) for m in row.metrics]
    return {
        "id": row.id,
        "title": row.title,
        "parameters": row.measured.parameters,
        "ruleset_hash": row.measured.ruleset_hash,
        **main,
        "also": others,
        "checks": [verdict_document(v) for v in row.verdicts],
        "refused": row.measured.refused,
        "problems": row.problems,
        "verdict": _word(row.outcome),
    }


def _crossing(found: Crossed) -> Document:
    """`value`, `low` and `high` are null where the crossing lies outside the range that was measured."""
    document = dataclasses.asdict(found)
    return {**document, "published": [p.model_dump(mode="json") for p in found.published]}


def _exercise(lab: Lab, run: Run, row: Row) -> Document:
    prediction = row.prediction
    return {
        "id": row.id,
        "title": row.title,
        "ruleset": row.measured.ruleset,
        "ruleset_hash": row.measured.ruleset_hash,
        "prediction": prediction
        and {
            "metric": prediction.metric.name,
            "unit": prediction.metric.unit,
            "value": prediction.value,
            "measured": prediction.measured,
            "ratio": prediction.ratio,
        },
        "figures": [_metric(lab, run, m) for m in row.metrics],
        "checks": [verdict_document(v) for v in row.verdicts],
        "refused": row.measured.refused,
        "problems": row.problems,
        "verdict": _word(row.outcome),
    }


def _metric(lab: Lab, run: Run, row: MetricRow) -> Document:
    found = row.figure
    document: Document = {
        "metric": row.metric.name,
        "unit": row.metric.unit,
        "trials": found.values if found else [],
        "median": found.median if found else None,
        "spread": found.spread if found else None,
        "ratio": None if row.ratio is None else {"to": lab.baseline, "value": row.ratio},
    }
    if row.traffic_class:
        document["class"] = row.traffic_class
    if row.cost is not None:
        document["cost"] = {"value": row.cost, "unit": cost_unit(run.testbed)}
    if row.published:
        document["published"] = [
            {**p.model_dump(mode="json"), "fidelity": fidelity(p, row.ratio)} for p in row.published
        ]
    return document


def _word(outcome: Outcome | None) -> str | None:
    return outcome.value if outcome is not None else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
