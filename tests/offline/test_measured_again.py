# SPDX-License-Identifier: GPL-2.0-or-later
"""A measurement in doubt is taken once more, and the second one counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from factories import a_lab, a_run, measured, testbed, trials

from fwlab.runs.session import Session
from fwlab.runs.task import Task
from fwlab.words.case import Trials
from fwlab.words.errors import CannotMeasure
from fwlab.words.events import Told
from fwlab.words.metric import Metric
from fwlab.words.results import Measured

LAB = a_lab()
TASK = Task(
    id="raw-drop",
    title="Raw drop",
    ruleset="raw-drop",
    files=[],
    metrics=[Metric.CAPACITY],
    traffic="flood",
    parameters={},
    trial=Trials(),
)
GOOD = {"trials": trials(300_000, 300_100)}
APART = {"trials": trials(280_000, 300_000)}
#: Can be judged; on the virtual testbed it is strange all the same.
STRANGE = {"trials": trials(290_000, 300_000)}
IDLE = {"trials": trials(300_000), "problems": ["the DUT was not saturated: busy 70%"]}


class Scripted:
    """A measurer that finds what it was told to find, one after the other."""

    def __init__(self, *found: dict | Exception) -> None:
        self._found = list(found)

    def measure(self, task: Task) -> Measured:
        found = self._found.pop(0)
        if isinstance(found, Exception):
            raise found
        return measured(LAB, task.id, **found)

    @property
    def left(self) -> int:
        return len(self._found)


def measure(*found: dict | Exception, **of_run: object) -> tuple[Measured, Scripted, list[str]]:
    told: list[str] = []
    measurer = Scripted(*found)
    run = a_run([], **of_run)
    session = Session(None, measurer, run, Path("none"), lambda e: told.append(e.line) if isinstance(e, Told) else None)
    session.measure_cases([TASK])
    return run.cases[0], measurer, told


def test_what_is_beyond_doubt_is_measured_once() -> None:
    found, measurer, told = measure(GOOD, GOOD)
    assert (measurer.left, found.measured_again, told) == (1, [], [])


@pytest.mark.parametrize("first", [APART, IDLE])
def test_a_doubt_is_measured_away_and_is_on_record(first: dict) -> None:
    found, measurer, told = measure(first, GOOD)
    assert measurer.left == 0
    assert found.trials == GOOD["trials"] and found.problems == []
    assert len(found.measured_again) == 1
    assert told == [f"raw-drop: {found.measured_again[0]}: measured once more"]


def test_trials_that_are_further_apart_than_usual_are_measured_once_more() -> None:
    found, measurer, told = measure(STRANGE, GOOD)
    assert (measurer.left, found.trials) == (0, GOOD["trials"])
    assert found.measured_again == ["the trials are 3.4% apart; at most 2% is usual here"]


def test_real_time_has_more_apart_and_is_not_measured_again_for_that() -> None:
    kvm = testbed(name="real", accelerator="kvm", clock="host", ns_per_instruction=None)
    found, measurer, _ = measure(STRANGE, GOOD, testbed=kvm)
    assert (measurer.left, found.trials) == (1, STRANGE["trials"])


def test_the_second_counts_even_if_it_is_no_better_and_there_is_no_third() -> None:
    found, measurer, _ = measure(APART, IDLE, GOOD)
    assert measurer.left == 1
    assert found.problems == IDLE["problems"]
    assert found.measured_again == ["the trials are 6.9% apart; at most 5% can be judged"]


def test_a_refused_ruleset_is_an_answer_and_not_tried_again() -> None:
    found, measurer, _ = measure({"trials": [], "refused": "no such table"}, GOOD)
    assert (measurer.left, found.refused) == (1, "no such table")


def test_a_machine_that_dies_is_not_asked_again() -> None:
    found, measurer, _ = measure(CannotMeasure("the DUT is gone", "vagrant up"), GOOD)
    assert measurer.left == 1
    assert (found.problems, found.measured_again) == (["the DUT is gone"], [])


def test_a_machine_that_dies_the_second_time_leaves_its_reason() -> None:
    found, _, _ = measure(APART, CannotMeasure("the DUT is gone", "vagrant up"))
    assert found.problems == ["the DUT is gone"]
    assert "6.9% apart" in found.measured_again[0]
