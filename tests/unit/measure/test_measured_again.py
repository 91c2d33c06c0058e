# SPDX-License-Identifier: GPL-2.0-or-later
"""A measurement in doubt is taken once more, and the second one counts. What follows nodes that do not answer."""

from dataclasses import replace
from pathlib import Path

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.measure.session import EXERCISE_S, REVIVALS, WITHOUT_S, Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import CannotMeasure, CannotStart, DeadlineExceeded, DutLost
from fwlab.model.events import LogLine
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile
from fwlab.model.verdict import Outcome
from tests.fakes.factories import a_lab, a_run, measured, real, trials

LAB = a_lab()
TASK = MeasurementSpec("raw-drop", "Raw drop", "raw-drop", [], ["capacity"], traffic="flood")
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


def a_session(
    *found: dict | Exception, backup: Backup | None = None, told: list[str] | None = None, **of_run: object
) -> tuple[Session, Scripted]:
    """A session, and the measurer that finds this; `told`: the lines of its log."""

    def emit(event: object) -> None:
        if told is not None and isinstance(event, LogLine):
            told.append(event.line)

    measurer = Scripted(*found)
    return Session(None, measurer, backup or Backup(), a_run([], **of_run), Path("none"), emit), measurer


def measure(*found: dict | Exception, restores: int = 0, **of_run: object) -> tuple[Measured, Scripted]:
    """A lab's case."""
    session, measurer = a_session(*found, backup=Backup(restores), **of_run)
    session.measure_cases([TASK])
    return session.run.cases[0], measurer


def exercise(*found: dict | Exception, restores: int = 9) -> tuple[Measured, Scripted]:
    """One ruleset of a student."""
    session, measurer = a_session(*found, backup=Backup(restores))
    session.measure_exercises([replace(TASK, files=[RulesetFile("rules.nft", "", "nft")])])
    return session.run.exercises[0], measurer


def judged(found: Measured) -> tuple[Outcome, str]:
    verdict, *_ = judge_exercise(LAB.exercises[0], found, a_run([]), METRICS)
    return verdict.outcome, verdict.text


GONE = DutLost("lost the connection to the dut", "vagrant up")
STUCK = CannotMeasure("generator: wrk does not stop", "vagrant reload LAB")
SLOW = DeadlineExceeded("dut: the measurement took more than 240 s")
FAR = "the trials are 6.9% apart; at most 5% can be judged"


@pytest.mark.parametrize(
    ("found", "restores", "problems", "again", "left"),
    [
        ([GOOD, GOOD], 0, [], [], 1),
        ([APART, GOOD], 0, [], [FAR], 0),
        ([IDLE, GOOD], 0, [], IDLE["problems"], 0),
        ([STRANGE, GOOD], 0, [], ["the trials are 3.4% apart; at most 2% is usual here"], 0),
        ([APART, IDLE, GOOD], 0, IDLE["problems"], [FAR], 1),
        ([{"trials": [], "refused": "no such table"}, GOOD], 0, [], [], 1),
        ([CannotStart("generator: TRex ended with 127: no"), GOOD], 9, ["generator: TRex ended with 127: no"], [], 1),
        ([CannotMeasure("the DUT is gone"), GOOD], 0, ["the DUT is gone"], [], 1),
        ([APART, CannotMeasure("the DUT is gone")], 0, ["the DUT is gone"], [FAR], 0),
        ([GONE, GOOD], 1, [], [GONE.message], 0),
        ([GONE, SLOW], 2, [SLOW.message], [GONE.message], 0),
        ([STUCK, STUCK], 2, [STUCK.message], [STUCK.message], 0),
    ],
    ids=[
        "conclusive",
        "apart",
        "idle",
        "unusual spread",
        "the second counts, and there is no third",
        "refused",
        "what cannot start is not tried again",
        "a dead machine is not used again",
        "a machine that dies the second time",
        "a restored DUT",
        "a DUT that is lost once and then slow",
        "a generator that fails twice is no fault of the ruleset",
    ],
)
def test_what_is_in_doubt_is_measured_once_more(
    found: list, restores: int, problems: list[str], again: list[str], left: int
) -> None:
    result, measurer = measure(*found, restores=restores)
    assert (result.problems, result.remeasured_because, result.lost) == (problems, again, [])
    assert (measurer.left, measurer.forgotten) == (left, 0)
    if left == 0 and not problems:
        assert result.trials == GOOD["trials"]
    if problems:
        assert judged(result)[0] is Outcome.INCONCLUSIVE


def test_the_reason_is_logged() -> None:
    told: list[str] = []
    session, _ = a_session(APART, GOOD, told=told)
    session.measure_cases([TASK])
    assert told == [f"raw-drop: {FAR}: measuring once more"]


@pytest.mark.parametrize(("first", "counts"), [(APART, [5, 15]), (STRANGE, [5, 5]), (IDLE, [5, 5])])
def test_trials_too_far_apart_are_followed_by_more(first: dict, counts: list[int]) -> None:
    assert measure(first, GOOD)[1].counts == counts


def test_spread_in_real_time_is_not_measured_again() -> None:
    scattered = {"trials": trials(288_000, 290_000, 292_000, 294_000, 297_000, 300_000)}
    found, measurer = measure(scattered, GOOD, testbed=real())
    assert (measurer.left, found.trials) == (1, scattered["trials"])


def test_a_ruleset_that_kills_the_dut_twice_has_failed() -> None:
    """It was restored in between and answered, so the host is not the cause."""
    found, _ = measure(GONE, GONE, restores=2)
    assert found.lost == [GONE.message] * 2
    assert judged(found) == (Outcome.FAIL, f"the DUT did not survive this ruleset, twice: {GONE.message}")


# ---- what may be the ruleset's fault

LATE = DeadlineExceeded(
    "dut: the measurement took more than 240 s: the clients completed 9 connections; a limit may be the cause"
)
LIMITED = {"trials": [], "problems": ["DUT not saturated"], "suspects": ["DUT not saturated"]}
#: On both sides of the bound.
SCATTERED = {"trials": trials(230_000, 250_000)}
BUSY_HOST = {"trials": [], "problems": ["3 ticks came late"]}


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


def test_a_labs_case_is_not_measured_without_its_ruleset() -> None:
    assert measure(LIMITED, LIMITED, GOOD)[1].left == 1


# ---- one measurement after the other


def test_the_next_item_is_measured_on_a_restored_dut() -> None:
    session, _ = a_session(GONE, GOOD, GONE, GOOD, backup=Backup(3))
    session.measure_exercises([TASK, TASK])
    assert [len(found.trials) for found in session.run.exercises] == [0, len(GOOD["trials"])]


def test_nodes_that_answer_again_are_used_again() -> None:
    """Until then the rest is inconclusive."""
    backup = Backup(0)
    session, measurer = a_session(GONE, GOOD, backup=backup)
    session.measure_exercises([TASK, TASK])
    backup.answers = True
    session.measure_exercises([TASK])
    assert [found.problems for found in session.run.exercises] == [[GONE.message], [GONE.message], []]
    assert measurer.forgotten == 1


def test_nodes_that_stay_silent_are_not_asked_for_ever() -> None:
    """Nor does the next student pay for them."""
    backup = Backup(0)
    session, _ = a_session(GONE, GOOD, backup=backup)
    session.measure_exercises([TASK] * (REVIVALS + 2))
    backup.answers = True
    session.measure_exercises([TASK])
    assert [found.problems for found in session.run.exercises] == [[GONE.message]] * (REVIVALS + 3)
    assert -backup.times == 1 + REVIVALS
    session.start_over()
    session.measure_exercises([TASK])
    assert session.run.exercises[-1].problems == []


def test_a_session_without_a_saved_state_goes_on_if_all_nodes_answer() -> None:
    session, measurer = a_session(STUCK, STUCK, GOOD, GOOD, backup=Backup(0, answers=True))
    session.measure_exercises([TASK, TASK])
    session.start_over()
    session.measure_exercises([TASK])
    assert [found.problems for found in session.run.exercises] == [[STUCK.message], [], []]
    assert measurer.forgotten == 0, "who starts over has to do with the reset"


def test_who_starts_over_gets_the_saved_dut_if_a_strangers_ruleset_ran_since() -> None:
    backup = Backup(9)
    session, measurer = a_session(*[GOOD] * 5, backup=backup)
    session.measure_cases([TASK])
    session.measure_exercises([TASK], trusted=True)
    session.start_over()
    assert backup.times == 9, "the lab's own rulesets are trusted"
    session.measure_exercises([TASK])
    session.measure_exercises([TASK], trusted=True)
    session.start_over()
    session.start_over()
    assert (backup.times, measurer.forgotten, measurer.put_back) == (8, 1, 1)
    session.measure_exercises([TASK])
    assert [found.trials for found in session.run.exercises] == [GOOD["trials"]] * 4


# ---- a link that the host loses

LOST = CannotMeasure("this host lost a link of lab03-ipset: the VF 0000:01:10.0 of enp1s0 is gone", "vagrant destroy")
SILENT = {"trials": [], "problems": ["the DUT received nothing"]}


@pytest.mark.parametrize("found", [CannotMeasure("dut: no answer within 60 s"), SILENT], ids=["error", "silence"])
def test_a_lost_link_ends_the_session_and_is_not_the_rulesets_fault(found: dict | Exception) -> None:
    """What was measured stays, and the reason is named."""
    measurer, backup = Scripted(GOOD, found, GOOD), Backup(5)
    session = Session(None, measurer, backup, a_run([]), Path("none"), lambda _event: None, lambda: LOST)
    session.measure_cases([TASK, TASK, TASK])
    said = f"{LOST.message}; next: {LOST.hint}"
    assert [(case.problems, case.lost) for case in session.run.cases] == [([], []), ([said], []), ([said], [])]
    assert (measurer.left, backup.times) == (1, 5)


def test_a_link_that_is_there_changes_nothing() -> None:
    assert measure(SILENT, SILENT)[0].problems == SILENT["problems"]
