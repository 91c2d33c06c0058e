# SPDX-License-Identifier: GPL-2.0-or-later
"""Several labs are graded in one go. With --machines they share machines that are opened once; results stay apart."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.context import RunContext, same_machines
from fwlab.measure.session import Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.results import Measured
from fwlab.testbed.selection import TestbedRequest
from tests import ROOT
from tests.fakes import factories
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading

OTHER = "lab97-other"
DROP = "*raw\n-A PREROUTING -j DROP\nCOMMIT\n"


@pytest.fixture
def two_labs(tmp_path: Path) -> FakeGrading:
    """Two labs. The reference of the other one says what the DUT does: nothing."""
    grading = FakeGrading(tmp_path)
    grading.add_lab(OTHER)
    write(grading, LAB, DROP)
    write(grading, OTHER, DROP)
    return grading


def write(grading: FakeGrading, lab: str, text: str) -> None:
    folder = grading.top / "labs" / lab / "rulesets" / EXERCISE / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.iptables").write_text(text)


def graded(grading: FakeGrading, *words: str) -> SimpleNamespace:
    return grading.call("--lab", LAB, "--lab", OTHER, "--part", "reference", "-q", "-s", *words)


def verdicts(grading: FakeGrading, lab: str) -> list[str]:
    path = grading.top / "reports" / lab / "grading" / "marks.csv"
    return [row["verdict"] for row in csv.DictReader(path.open(newline=""))]


@pytest.mark.parametrize(("words", "times"), [(("--machines", LAB), 1), ((), 2)])
def test_machines_are_opened_once_for_both_or_for_each(
    two_labs: FakeGrading, words: tuple[str, ...], times: int
) -> None:
    done = graded(two_labs, *words)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("machines up") == done.stdout.count("machines down") == times
    assert [f"machines up: {lab}" in done.stdout for lab in (LAB, OTHER)] == [True, times == 2]
    assert verdicts(two_labs, LAB) == verdicts(two_labs, OTHER) == ["pass"]


def test_a_lab_whose_dut_died_does_not_keep_the_next_one_from_new_connections(two_labs: FakeGrading) -> None:
    write(two_labs, LAB, f"# on the DUT: dies\n{DROP}")
    done = graded(two_labs, "--machines", LAB)
    assert done.stdout.count("machines up") == 2
    assert (verdicts(two_labs, LAB), verdicts(two_labs, OTHER)) == (["inconclusive"], ["pass"])


@pytest.mark.parametrize("words", [("--submissions", "class"), ("--results", "there")])
def test_what_belongs_to_one_lab_is_refused_for_two(two_labs: FakeGrading, words: tuple[str, ...]) -> None:
    done = graded(two_labs, *words)
    assert f"{words[0]} needs one --lab" in done.stderr
    assert "machines up" not in done.stdout


class Playing:
    """A measurer that notes what is played while it measures."""

    def __init__(self) -> None:
        self.played, self.heard = "the first lab's", []

    def playing(self, store: object, classes: object) -> Playing:
        self.heard.append((store, classes))
        return self

    def __enter__(self) -> None:
        self.played = "the other lab's"

    def __exit__(self, *_: object) -> None:
        self.played = "the first lab's"

    def measure(self, spec: MeasurementSpec, limit_s: float | None = None) -> Measured:
        return factories.attempt(250_000, 250_000, id=spec.id, title=self.played)


def context(name: str) -> Any:
    lab = factories.a_lab().model_copy(update={"id": name})
    return SimpleNamespace(project=Project(ROOT), lab=lab, store=f"frames of {name}", seed=7)


def test_a_session_for_another_lab_plays_that_labs_traffic_into_a_run_of_its_own() -> None:
    measurer, first = Playing(), context(LAB)
    session = Session(first, measurer, None, factories.a_run([], lab=LAB), Path(), lambda _event: None)
    other = session.for_lab(context(OTHER))
    spec = MeasurementSpec("one", "One", "drop", [], ["capacity"])
    session.measure_cases([spec])
    other.measure_cases([spec])
    assert [case.title for case in session.run.cases] == ["the first lab's"]
    assert [case.title for case in other.run.cases] == ["the other lab's"]
    assert measurer.heard == [(f"frames of {OTHER}", other.context.lab.classes)]
    assert (other.run.lab, other.run.seed, other.run.host) == (OTHER, 7, session.run.host)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"lab": factories.a_lab()}, True),
        ({"other_lab": None}, False),
        ({"testbed": TestbedRequest("real")}, False),
        ({"engine": "trex"}, False),
        ({"core": "old"}, False),
    ],
    ids=lambda value: "" if isinstance(value, bool) else next(iter(value)),
)
def test_only_what_uses_the_same_machines_in_the_same_way_shares_them(
    changed: dict[str, object], same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fwlab.measure.context.model_of", lambda _core: None)
    lab, machines = (factories.a_lab().model_copy(update={"id": name}) for name in (LAB, OTHER))
    known = {"project": None, "topology": None, "lab": lab, "testbed": TestbedRequest(), "other_lab": machines}
    one, other = RunContext(**known), RunContext(**{**known, **changed})  # type: ignore[arg-type]
    assert same_machines(one, other) == same
