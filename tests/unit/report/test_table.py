# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of a report, their JSON documents, and the format of figures."""

import json
import math

import pytest

from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome
from fwlab.report import formatting
from fwlab.report.model import build_model
from fwlab.report.renderers.json_output import check_document, run_document
from fwlab.report.report_rows import Row, fidelity, overall_outcome
from tests.fakes.factories import RANGES, a_full_run, a_lab, a_run, attempt, measured, trials

LAB = a_lab(RANGES)
RUN = a_full_run(LAB)


def row(case_id: str, run: Run = RUN, lab: Lab = LAB) -> Row:
    return next(r for r in build_model(lab, run).cases if r.id == case_id)


class TestRows:
    def test_ratio_and_cost_of_a_case(self) -> None:
        """The ratio is to the baseline of the same run, the cost is the inverse of the capacity."""
        found = row("set-1000").of("capacity")
        assert (found.ratio, found.cost) == (pytest.approx(0.91), pytest.approx(1e9 / 273_000))
        assert row("raw-drop").of("capacity").ratio == 1.0
        assert row("rules-16").of("load_time").ratio is None
        alone = a_run([measured(LAB, "set-1000", 273_000)])
        assert row("set-1000", alone).of("capacity").ratio is None

    def test_published_figures_are_next_to_the_metric_of_their_unit(self) -> None:
        by_metric = {m.metric.name: [p.source for p in m.published] for m in row("set-1000").metrics}
        assert by_metric == {"capacity": ["S1"], "load_time": []}
        declared = LAB.model_dump(by_alias=True, mode="json", exclude_none=True)
        declared["sweeps"][1]["published"]["1000"] = [
            {"source": "S1", "value": 0.03, "unit": "s"},
            {"source": "S2", "value": 9000, "unit": "connections/s"},
        ]
        other = row("set-1000", lab=Lab.model_validate(declared))
        by_metric = {m.metric.name: [p.source for p in m.published] for m in other.metrics}
        assert by_metric == {"capacity": ["S2"], "load_time": ["S1"]}, "a unit of no metric is the main one's"

    def test_fidelity_is_our_ratio_against_the_published_one(self) -> None:
        published = row("set-1000").of("capacity").published[0]
        assert fidelity(published, 0.91) == pytest.approx(0)
        assert fidelity(published, 0.819) == pytest.approx(-0.1)
        assert fidelity(published, None) is None

    def test_delivered_has_a_row_for_each_class_that_was_offered(self) -> None:
        rows = build_model(LAB, RUN).exercises[0].metrics
        assert [(m.traffic_class, m.label) for m in rows if m.metric.name == "delivered"] == [
            ("attacker", "delivered, attacker"),
            ("others", "delivered, others"),
        ]
        assert rows[0].label == "capacity"

    @pytest.mark.parametrize(
        ("case_id", "fields", "outcome", "problems"),
        [
            ("raw-drop", None, Outcome.PASS, ()),
            ("set-1", None, Outcome.FAIL, ()),
            ("set-1000", None, Outcome.PASS, ()),
            ("rules-16", None, None, ()),
            (
                "rules-16",
                {"trials": trials(240_000, busy_share=0.5)},
                Outcome.INCONCLUSIVE,
                ("DUT not saturated: busy 50.0% of a trial",),
            ),
            ("rules-16", {"refused": "line 2 failed"}, Outcome.FAIL, ("not loaded: line 2 failed",)),
        ],
    )
    def test_outcome_of_a_case(
        self, case_id: str, fields: dict[str, object] | None, outcome: Outcome | None, problems: tuple[str, ...]
    ) -> None:
        """Without expectations a problem is inconclusive, and a refused ruleset fails."""
        found = row(case_id, RUN if fields is None else a_run([measured(LAB, case_id, **fields)]))
        assert (found.outcome, found.problems) == (outcome, problems)

    def test_the_worst_row_decides(self) -> None:
        assert overall_outcome(build_model(LAB, RUN).cases) is Outcome.FAIL
        assert overall_outcome([row("raw-drop"), row("rules-16")]) is Outcome.PASS
        assert overall_outcome([row("rules-16")]) is None

    def test_a_case_that_the_lab_no_longer_has_is_still_shown(self) -> None:
        old = measured(LAB, "rules-16", 240_000).model_copy(update={"id": "gone", "title": "Gone"})
        assert row("gone", a_run([old])).title == "Gone"

    def test_the_same_exercise_measured_twice_is_judged_by_each_measurement(self) -> None:
        run = a_run([], [attempt(250_000), attempt(250_000, arrived=900)])
        assert [r.outcome for r in build_model(LAB, run).exercises] == [Outcome.PASS, Outcome.FAIL]


class TestDocuments:
    def test_a_case_has_what_scripts_need(self) -> None:
        document = run_document(build_model(LAB, RUN))
        case = next(c for c in document["cases"] if c["id"] == "set-1000")
        assert (case["metric"], case["unit"]) == ("capacity", "pps")
        assert case["trials"] == [273_000, 273_000, 273_600]
        assert case["median"] == 273_000
        assert case["spread"] == pytest.approx(600 / 273_000)
        assert case["ratio"] == {"to": "raw-drop", "value": pytest.approx(0.91)}
        assert case["verdict"] == "pass"
        assert [(o["metric"], o["trials"]) for o in case["also"]] == [("load_time", [0.02, 0.022])]
        assert [c["check"] for c in case["checks"]] == ["relative"]
        assert document["verdict"] == "fail"

        assert document["dut"]["kernel"] == "6.1.0-dut"
        assert document["testbed"]["name"] == "virtual"
        assert (document["lab"], document["commit"]) == (RUN.lab, RUN.commit)

    def test_nothing_expected_is_null_not_pass(self) -> None:
        document = run_document(build_model(a_lab(), a_full_run(a_lab())))
        assert {case["verdict"] for case in document["cases"]} == {document["verdict"]} == {None}

    def test_an_exercise_has_its_prediction_and_checks(self) -> None:
        document = check_document(build_model(LAB, RUN))
        found = document["exercises"][0]
        assert (found["id"], found["verdict"], document["verdict"]) == ("ex1-block", "pass", "pass")
        assert found["prediction"]["value"] == 300_000
        assert found["prediction"]["ratio"] == pytest.approx(0.85)
        assert [c["outcome"] for c in found["checks"]] == ["pass", "pass"]
        assert {f.get("class") for f in found["figures"]} == {None, "attacker", "others"}

        assert (found["checks"][0]["low"], found["checks"][0]["high"]) == (200_000, None), "an open side"

    def test_both_are_strict_json(self) -> None:
        for document in (run_document(build_model(LAB, RUN)), check_document(build_model(LAB, RUN))):
            assert json.loads(json.dumps(document, allow_nan=False)) == document

    def test_a_case_without_a_figure_is_inconclusive(self) -> None:
        case = run_document(build_model(LAB, a_run([measured(LAB, "raw-drop")])))["cases"][0]
        assert (case["trials"], case["median"], case["verdict"]) == ([], None, "inconclusive")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (279_600, "279600"), (12.344, "12.34"), (0.00012344, "0.0001234"), (float("inf"), "∞")],
)
def test_digits(value: float, text: str) -> None:
    assert formatting.digits(value) == text


@pytest.mark.parametrize(
    ("metric", "between", "relative_to", "words"),
    [
        ("delivered", (0.9995, 1.0005), None, "99.95 % to 100.05 %"),
        ("capacity", (240_000, math.inf), None, "at least 240 kpps"),
        ("capacity", (-math.inf, 240_000), None, "at most 240 kpps"),
        ("capacity", (0.88, 0.935), "raw-drop", "0.88 to 0.935 of raw-drop"),
        ("delivered", (0, 0), None, "0 %"),
    ],
)
def test_bounds_are_not_rounded_into_the_range(
    metric: str, between: tuple[float, float], relative_to: str | None, words: str
) -> None:
    low, high = between
    given = build_model(LAB, RUN).exercises[0].verdicts[0]
    changed = {"metric": metric, "low": low, "high": high, "relative_to": relative_to}
    assert formatting.expected_range(given.model_copy(update=changed)) == words
