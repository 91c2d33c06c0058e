# SPDX-License-Identifier: GPL-2.0-or-later
"""A measurement in doubt is taken once more, and the second one counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.measure.session import EXERCISE_S, REVIVALS, WITHOUT_S, Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Trials
from fwlab.model.errors import CannotMeasure, CannotStart, DutLost, Overdue
from fwlab.model.events import LogLine
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile
from fwlab.model.verdict import Outcome
from tests.fakes.factories import a_lab, a_run, measured, testbed, trials

LAB = a_lab()
TASK = MeasurementSpec(
    id="raw-drop",
    title="Raw drop",
    ruleset="raw-drop",
    files=[],
    metrics=["capacity"],
    traffic="flood",
    parameters={},
    trial=Trials(),
)
GOOD = {"trials": trials(300_000, 300_100)}
APART = {"trials": trials(280_000, 300_000)}
#: A spread that can be judged, but is unusual on the virtual testbed.
STRANGE = {"trials": trials(290_000, 300_000)}
IDLE = {"trials": trials(300_000), "problems": ["the DUT was not saturated: busy 70%"]}


class Scripted:
    """A measurer that returns the given results one after the other."""

    def __init__(self, *found: dict | Exception) -> None:
        self._found = list(found)
        self.counts: list[int] = []
        self.forgotten = self.put_back = 0
        self.files: list[int] = []
        self.limits: list[float | None] = []

    def measure(self, task: MeasurementSpec, limit_s: float | None = None) -> Measured:
        self.counts.append(task.trial.count)
        self.files.append(len(task.files))
        self.limits.append(limit_s)
        found = self._found.pop(0)
        if isinstance(found, Exception):
            raise found
        return measured(LAB, TASK.id, **found)

    def forget(self) -> None:
        self.forgotten += 1

    def put_back_ends(self) -> None:
        self.put_back += 1

    @property
    def left(self) -> int:
        return len(self._found)


class Backup:
    """A saved state that can restore the DUT a given number of times; `answers`: whether the nodes do without it."""

    def __init__(self, times: int = 0, *, answers: bool = False) -> None:
        self.times, self.prepared, self.answers = times, 0, answers

    def prepare(self) -> None:
        self.prepared += 1

    def restore(self) -> bool:
        self.times -= 1
        return self.times >= 0

    def reconnect(self) -> bool:
        return self.answers


def measure(*found: dict | Exception, restores: int = 0, **of_run: object) -> tuple[Measured, Scripted, list[str]]:
    told: list[str] = []
    measurer = Scripted(*found)
    run = a_run([], **of_run)

    def tell(event: object) -> None:
        if isinstance(event, LogLine):
            told.append(event.line)

    session = Session(None, measurer, Backup(restores), run, Path("none"), tell)
    session.measure_cases([TASK])
    return run.cases[0], measurer, told


def test_a_conclusive_result_is_measured_once() -> None:
    found, measurer, told = measure(GOOD, GOOD)
    assert (measurer.left, found.measured_again, told) == (1, [], [])


def test_what_cannot_start_is_not_tried_again_and_the_dut_stays_as_it_is() -> None:
    found, measurer, told = measure(CannotStart("generator: TRex ended with 127: no"), GOOD, restores=-1)
    assert (measurer.left, found.problems, told) == (1, ["generator: TRex ended with 127: no"], [])
    assert measurer.forgotten == 0


@pytest.mark.parametrize("first", [APART, IDLE])
def test_an_inconclusive_result_is_measured_again_and_recorded(first: dict) -> None:
    found, measurer, told = measure(first, GOOD)
    assert measurer.left == 0
    assert found.trials == GOOD["trials"]
    assert found.problems == []
    assert len(found.measured_again) == 1
    assert told == [f"raw-drop: {found.measured_again[0]}: measuring once more"]


def test_trials_with_unusual_spread_are_measured_again() -> None:
    found, measurer, _told = measure(STRANGE, GOOD)
    assert (measurer.left, found.trials) == (0, GOOD["trials"])
    assert found.measured_again == ["the trials are 3.4% apart; at most 2% is usual here"]


@pytest.mark.parametrize(("first", "counts"), [(APART, [5, 15]), (STRANGE, [5, 5]), (IDLE, [5, 5])])
def test_trials_too_far_apart_are_followed_by_more(first: dict, counts: list[int]) -> None:
    assert measure(first, GOOD)[1].counts == counts


def test_spread_in_real_time_is_not_measured_again() -> None:
    kvm = testbed(name="real", accelerator="kvm", clock="host", ns_per_instruction=None)
    scattered = {"trials": trials(288_000, 290_000, 292_000, 294_000, 297_000, 300_000)}
    found, measurer, _ = measure(scattered, GOOD, testbed=kvm)
    assert (measurer.left, found.trials) == (1, scattered["trials"])


def test_the_second_measurement_counts_and_there_is_no_third() -> None:
    found, measurer, _ = measure(APART, IDLE, GOOD)
    assert measurer.left == 1
    assert found.problems == IDLE["problems"]
    assert found.measured_again == ["the trials are 6.9% apart; at most 5% can be judged"]


def test_a_refused_ruleset_is_not_measured_again() -> None:
    found, measurer, _ = measure({"trials": [], "refused": "no such table"}, GOOD)
    assert (measurer.left, found.refused) == (1, "no such table")


def test_a_dead_machine_is_not_used_again() -> None:
    found, measurer, _ = measure(CannotMeasure("the DUT is gone", "vagrant up"), GOOD)
    assert measurer.left == 1
    assert (found.problems, found.measured_again) == (["the DUT is gone"], [])


def test_a_machine_that_dies_the_second_time_leaves_its_reason() -> None:
    found, _, _ = measure(APART, CannotMeasure("the DUT is gone", "vagrant up"))
    assert found.problems == ["the DUT is gone"]
    assert "6.9% apart" in found.measured_again[0]


GONE = DutLost("lost the connection to the dut", "vagrant up")
STUCK = CannotMeasure("generator: wrk does not stop", "vagrant reload LAB")


def test_a_restored_dut_is_measured_again() -> None:
    found, measurer, _ = measure(GONE, GOOD, restores=1)
    assert measurer.left == 0
    assert (found.trials, found.problems, found.lost) == (GOOD["trials"], [], [])
    assert found.measured_again == ["lost the connection to the dut"]


def test_a_ruleset_that_kills_the_dut_twice_has_failed() -> None:
    """It was restored in between and answered, so the host is not the cause."""
    found, _, _ = measure(GONE, GONE, restores=2)
    assert found.lost == ["lost the connection to the dut"] * 2
    verdict, *_ = judge_exercise(LAB.exercises[0], found, a_run([]), METRICS)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.text == "the DUT did not survive this ruleset, twice: lost the connection to the dut"


def test_a_dut_lost_once_and_then_slow_is_inconclusive() -> None:
    found, _, _ = measure(GONE, Overdue("it was not measured within 240 s"), restores=2)
    assert (found.lost, found.problems) == ([], ["it was not measured within 240 s"])


LATE = Overdue("it was not measured within 240 s: the clients completed 9 connections; a limit may be the cause")
LIMITED = {"trials": [], "problems": ["DUT not saturated"], "suspects": ["DUT not saturated"]}
#: On both sides of the bound.
SCATTERED = {"trials": trials(230_000, 250_000)}
BUSY_HOST = {"trials": [], "problems": ["3 ticks came late"]}


def exercise(*found: dict | Exception, restores: int = 9) -> tuple[Measured, Scripted]:
    """The result of one ruleset of a student."""
    measurer = Scripted(*found)
    session = Session(None, measurer, Backup(restores), a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([replace(TASK, files=[RulesetFile("rules.nft", "", "nft")])])
    return session.run.exercises[0], measurer


def judged(found: Measured) -> tuple[Outcome, str]:
    verdict, *_ = judge_exercise(LAB.exercises[0], found, a_run([]), METRICS)
    return verdict.outcome, verdict.text


@pytest.mark.parametrize("doubt", [LATE, LIMITED, SCATTERED])
def test_a_ruleset_in_doubt_twice_fails_if_all_is_well_without_it(doubt: dict | Exception) -> None:
    found, measurer = exercise(doubt, GOOD, doubt)
    assert measurer.files == [1, 0, 1]
    assert measurer.put_back == 1
    assert measurer.limits == [EXERCISE_S, WITHOUT_S if doubt is LATE else EXERCISE_S, EXERCISE_S]
    outcome, text = judged(found)
    assert outcome is Outcome.FAIL
    assert text.startswith("it could not be measured with this ruleset, twice, and could in between without it: ")
    assert doubt is not LATE or "limit" in text


@pytest.mark.parametrize("doubt", [LATE, LIMITED, SCATTERED])
@pytest.mark.parametrize("alone", [LATE, IDLE, BUSY_HOST, APART])
def test_it_is_inconclusive_if_the_host_keeps_the_start_state_from_it_too(
    doubt: dict | Exception, alone: dict | Exception
) -> None:
    found, measurer = exercise(doubt, alone, doubt)
    assert (measurer.left, judged(found)[0]) == (0, Outcome.INCONCLUSIVE)


@pytest.mark.parametrize("doubt", [BUSY_HOST, STUCK])
def test_what_no_ruleset_can_cause_is_never_its_fault(doubt: dict | Exception) -> None:
    found, measurer = exercise(doubt, doubt, GOOD)
    assert (measurer.left, judged(found)[0]) == (1, Outcome.INCONCLUSIVE)
    found, _ = exercise(LATE, GOOD, doubt)
    assert judged(found)[0] is Outcome.INCONCLUSIVE


def test_a_ruleset_that_is_measured_at_the_second_try_counts() -> None:
    found, measurer = exercise(LATE, GOOD, GOOD)
    assert (measurer.left, found.fine_without, found.problems) == (0, False, [])


def test_a_lab_s_case_is_not_measured_without_its_ruleset() -> None:
    _, measurer, _ = measure(LIMITED, LIMITED, GOOD)
    assert measurer.left == 1


def test_the_next_item_is_measured_on_a_restored_dut() -> None:
    measurer = Scripted(GONE, GOOD, GONE, GOOD)
    session = Session(None, measurer, Backup(3), a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK, TASK])
    assert [len(found.trials) for found in session.run.exercises] == [0, len(GOOD["trials"])]


def test_after_losing_the_dut_for_good_the_rest_is_inconclusive() -> None:
    session = Session(None, Scripted(GONE, GOOD), Backup(0), a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK, TASK])
    assert [found.problems for found in session.run.exercises] == [[GONE.message]] * 2


def test_nodes_that_answer_again_are_used_again() -> None:
    """Only the measurement fails at whose end they did not answer."""
    backup = Backup(0, answers=False)
    measurer = Scripted(GONE, GOOD)
    session = Session(None, measurer, backup, a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK])
    backup.answers = True
    session.measure_exercises([TASK])
    assert [found.problems for found in session.run.exercises] == [[GONE.message], []]
    assert measurer.forgotten == 1


def test_nodes_that_stay_silent_are_not_asked_for_ever() -> None:
    backup = Backup(0, answers=False)
    session = Session(None, Scripted(GONE, GOOD), backup, a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK] * (REVIVALS + 2))
    backup.answers = True
    session.measure_exercises([TASK])
    assert [found.problems for found in session.run.exercises] == [[GONE.message]] * (REVIVALS + 3)


def test_the_next_student_does_not_pay_for_nodes_that_stayed_silent() -> None:
    backup = Backup(0, answers=False)
    session = Session(None, Scripted(GONE, GOOD), backup, a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK] * (REVIVALS + 2))
    session.start_over()
    backup.answers = True
    session.measure_exercises([TASK])
    assert session.run.exercises[-1].problems == []


def test_a_generator_that_fails_twice_is_no_fault_of_the_ruleset() -> None:
    found, _, _ = measure(STUCK, STUCK, restores=2)
    assert (found.lost, found.problems) == ([], [STUCK.message])
    verdict, *_ = judge_exercise(LAB.exercises[0], found, a_run([]), METRICS)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_session_without_a_saved_state_goes_on_if_all_nodes_answer() -> None:
    backup = Backup(0, answers=True)
    session = Session(None, Scripted(STUCK, STUCK, GOOD), backup, a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK, TASK])
    first, second = session.run.exercises
    assert (first.problems, second.problems, second.trials) == ([STUCK.message], [], GOOD["trials"])


def test_who_starts_over_gets_the_saved_dut_if_a_ruleset_ran_since() -> None:
    measurer, backup = Scripted(GOOD, GOOD, GOOD), Backup(9)
    session = Session(None, measurer, backup, a_run([]), Path("none"), lambda _event: None)
    session.measure_cases([TASK])
    session.start_over()
    assert backup.times == 9, "the author's own ruleset is trusted"
    session.measure_exercises([TASK])
    session.start_over()
    session.start_over()
    assert (backup.times, measurer.forgotten) == (8, 1)
    session.measure_exercises([TASK])
    assert [found.trials for found in session.run.exercises] == [GOOD["trials"]] * 2


def test_who_follows_the_labs_own_ruleset_gets_the_dut_as_the_reset_left_it() -> None:
    measurer, backup = Scripted(GOOD, GOOD, GOOD), Backup(9)
    session = Session(None, measurer, backup, a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK], trusted=True)
    session.start_over()
    assert backup.times == 9
    session.measure_exercises([TASK])
    session.measure_exercises([TASK], trusted=True)
    session.start_over()
    assert backup.times == 8, "a stranger's ruleset ran before the lab's own"


def test_a_session_without_a_saved_state_starts_over_with_the_reset() -> None:
    measurer = Scripted(GOOD, GOOD)
    session = Session(None, measurer, Backup(0, answers=True), a_run([]), Path("none"), lambda _event: None)
    session.measure_exercises([TASK])
    session.start_over()
    session.measure_exercises([TASK])
    assert measurer.forgotten == 0
    assert [found.problems for found in session.run.exercises] == [[], []]
