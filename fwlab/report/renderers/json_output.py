# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON documents of `fwlab run --json` and `fwlab check --json`: plain data for scripts.

Numbers are in the metric's own unit (pps, s, ratio, count). JSON has no infinity, so an open side of a range is
null. A verdict of null means that nothing was expected and nothing is in doubt.
"""

import json
import math
from dataclasses import asdict
from typing import Any

from fwlab.judge.clocks import clock_of
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome, Verdict
from fwlab.report.curves import Crossover
from fwlab.report.model import ReportModel
from fwlab.report.renderers import Renderer
from fwlab.report.report_rows import MetricRow, Row, fidelity, overall_outcome

Document = dict[str, Any]


def text(document: Document | list[Document]) -> str:
    """A document as strict JSON."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def run_document(model: ReportModel) -> Document:
    """The cases of a run."""
    return {
        **_session(model.run),
        "cases": [_case(model, row) for row in model.cases],
        "crossings": [_crossing(crossover) for crossover in model.crossovers],
        "verdict": _word(overall_outcome(model.cases)),
    }


def check_document(model: ReportModel) -> Document:
    """The exercises of a run."""
    return {
        **_session(model.run),
        "exercises": [_exercise(model, row) for row in model.exercises],
        "verdict": _word(overall_outcome(model.exercises)),
    }


RENDERER = (
    Renderer("json", None, lambda model: text(run_document(model))),
    Renderer("check-json", None, lambda model: text(check_document(model))),
)


def verdict_document(verdict: Verdict) -> Document:
    """A verdict as plain data. JSON has no infinity: an open side of a range is None."""
    data = verdict.model_dump()
    data["outcome"] = verdict.outcome.value
    for side in ("low", "high"):
        data[side] = data[side] if math.isfinite(data[side]) else None
    return data


def _session(run: Run) -> Document:
    session = {"lab", "started", "commit", "fwlab", "seed", "testbed", "host", "dut"}
    return run.model_dump(mode="json", include=session)


def _case(model: ReportModel, row: Row) -> Document:
    main, *others = [_metric(model, row, m) for m in row.metrics]
    return {
        "id": row.id,
        "title": row.title,
        "parameters": row.measured.parameters,
        "ruleset_hash": row.measured.ruleset_hash,
        **main,
        "also": others,
        "checks": [verdict_document(v) for v in row.verdicts],
        "refused": row.measured.refused,
        "problems": list(row.problems),
        "verdict": _word(row.outcome),
    }


def _crossing(found: Crossover) -> Document:
    """`value`, `low` and `high` are null if the crossover is outside the range that was measured."""
    data = asdict(found)
    data |= {"behind": data.pop("slower"), "ahead": data.pop("faster")}
    return {**data, "published": [p.model_dump(mode="json") for p in found.published]}


def _exercise(model: ReportModel, row: Row) -> Document:
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
        "figures": [_metric(model, row, m) for m in row.metrics],
        "checks": [verdict_document(v) for v in row.verdicts],
        "refused": row.measured.refused,
        "remarks": row.measured.remarks,
        "problems": list(row.problems),
        "verdict": _word(row.outcome),
    }


def _metric(model: ReportModel, of: Row, row: MetricRow) -> Document:
    found = row.figure
    document: Document = {
        "metric": row.metric.name,
        "unit": row.metric.unit,
        "trials": found.values if found else [],
        "median": found.median if found else None,
        "spread": found.spread if found and found.several else None,
        "ratio": None if row.ratio is None else {"to": of.baseline, "value": row.ratio},
    }
    if found and found.chance is not None:
        document["binomial_interval"] = list(found.chance)
    if found and not clock_of(model.run.testbed).repeats:
        document["interval"] = list(found.interval) if found.interval else None
    if row.ratio_interval is not None:
        document["ratio"]["interval"] = list(row.ratio_interval)
    if row.traffic_class:
        document["class"] = row.traffic_class
    if row.cost is not None:
        document["cost"] = {"value": row.cost, "unit": clock_of(model.run.testbed).cost_unit}
    if row.published:
        document["published"] = [
            {**p.model_dump(mode="json"), "fidelity": fidelity(p, row.ratio)} for p in row.published
        ]
    return document


def _word(outcome: Outcome | None) -> str | None:
    return outcome.value if outcome is not None else None
