# SPDX-License-Identifier: GPL-2.0-or-later
"""lab03 on its real machines: measuring, repeatability, grading."""

from __future__ import annotations

import csv
import io
import shutil

import pytest

from .conftest import LAB, Checkout, document

pytestmark = pytest.mark.live


TRIALS = 10


def run(lab: Checkout) -> list[dict]:
    return document(lab.fwlab("run", LAB, "raw-drop", "ipset-1000", "--trials", str(TRIALS), "--json"))["cases"]


@pytest.fixture(scope="module")
def cases(lab: Checkout) -> list[dict]:
    return run(lab)


def test_a_run_has_all_fields_that_scripts_need(cases: list[dict]) -> None:
    for case in cases:
        assert {"id", "metric", "unit", "trials", "median", "spread", "verdict"} <= set(case)
        assert len(case["trials"]) == TRIALS


def test_trials_repeat_in_virtual_time(cases: list[dict]) -> None:
    """They lie within 0.5 %, at any load of the host."""
    for case in cases:
        assert case["spread"] <= 0.005, case


@pytest.mark.thorough
def test_another_run_has_the_same_capacity(lab: Checkout, cases: list[dict]) -> None:
    for first, second in zip(cases, run(lab), strict=True):
        assert abs(first["median"] / second["median"] - 1) <= 0.005, (first["median"], second["median"])


def test_expectations_hold(cases: list[dict]) -> None:
    for case in cases:
        assert case["checks"], f"{case['id']} has no expectations"
        assert case["verdict"] == "pass", case["checks"]


@pytest.mark.thorough
def test_the_sink_stays_silent(lab: Checkout) -> None:
    """Without its ruleset the sink answers IPv6 packets that it has no route for, and the DUT forwards the answers."""
    answers = "nstat -asz Icmp6OutMsgs Icmp6OutDestUnreachs | awk '/Unreachs/ { print $2 }'"
    before = int(lab.run("sink", f"sudo nft flush ruleset; {answers}"))
    case = document(lab.fwlab("run", "lab01-forwarding", "ipv6", "--machines", LAB, "--json"))["cases"][0]
    assert case["verdict"] == "pass", case
    assert int(lab.run("sink", answers)) == before


@pytest.mark.thorough
def test_a_class_is_graded(lab: Checkout, tmp_path) -> None:
    """A correct, a wrong and an invalid submission get their marks independently."""
    rulesets = lab.top / "labs" / LAB / "rulesets" / "ex1-one-host"
    for student, source in (("anna", "reference"), ("boris", "mistake")):
        shutil.copytree(rulesets / source, tmp_path / student / "ex1-one-host")
    evil = tmp_path / "carol" / "ex1-one-host"
    evil.mkdir(parents=True)
    (evil / "run.sh").write_text("touch /tmp/pwned\n")
    done = lab.pytest("--testinfra", "--lab", LAB, "--submissions", str(tmp_path), "-q", "-k", "ex1-one-host")
    assert done.returncode == 1, done.stdout[-3000:]
    marks = list(csv.DictReader(io.StringIO((lab.top / "reports" / LAB / "grading" / "marks.csv").read_text())))
    found = {row["who"]: row["verdict"] for row in marks}
    assert found == {"anna": "pass", "boris": "fail", "carol": "fail"}
    assert "run.sh (no tool loads *.sh)" in next(row["reason"] for row in marks if row["who"] == "carol")
