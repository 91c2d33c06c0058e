# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset that is cheap in the flood but correct only at a light load does not pass."""

from __future__ import annotations

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.judge.conduct import changes
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured
from fwlab.model.trial import Delivery
from fwlab.model.verdict import Outcome
from tests.fakes.factories import a_lab, a_run, attempt

LAB = a_lab()
MIX = {"attacker": 0.9, "others": 0.1}


def light(attacker: float, others: float, sent: int = 1000) -> Delivery:
    offered = {name: round(sent * share) for name, share in MIX.items()}
    arrived = {"attacker": round(offered["attacker"] * attacker), "others": round(offered["others"] * others)}
    return Delivery(intended_load=1000, sent=sent, offered=offered, arrived=arrived)


def flood(attacker: float, others: float, taken: int = 40_000, missed: float = 0.0) -> Delivery:
    """100 000 packets are sent. The DUT takes some of them, and the sink misses a share of what the DUT forwards."""
    offered = {name: round(100_000 * share) for name, share in MIX.items()}
    passed = {"attacker": taken * MIX["attacker"] * attacker, "others": taken * MIX["others"] * others}
    arrived = {name: round(count * (1 - missed)) for name, count in passed.items()}
    sent_on = round(sum(passed.values()))
    return Delivery(intended_load=None, sent=100_000, offered=offered, arrived=arrived, taken=taken, sent_on=sent_on)


def found(before: Delivery, during: Delivery | None, after: Delivery) -> Measured:
    return attempt(400_000, 400_000, 400_000, deliveries=[before, after, after], flood=during)


RIGHT = light(0, 1)
IN_PART = light(0, 0.11)


@pytest.mark.parametrize(
    "during",
    [flood(0, 1), flood(0, 0.97), flood(0, 1.2), flood(0, 1, missed=0.3), flood(0, 0.5, taken=100), None],
    ids=["as light", "a little less", "a class that the ring favours", "a slow sink", "too few to say", "not counted"],
)
def test_a_correct_ruleset_passes(during: Delivery | None) -> None:
    assert changes(found(RIGHT, during, RIGHT)) == {}


def test_a_class_that_passes_in_part_is_not_compared_in_the_flood() -> None:
    assert changes(found(IN_PART, flood(0, 0.087), IN_PART)) == {}


def test_a_class_in_bunches_scatters_more_in_the_flood() -> None:
    """Of 4000 packets of "others", 300 are missing, more than chance where they come one by one; then 800."""
    few = flood(0, 0.925)
    assert set(changes(found(RIGHT, few, RIGHT))) == {"others"}
    assert changes(found(RIGHT, few.model_copy(update={"dispersion": {"others": 4.2}}), RIGHT)) == {}
    none = flood(0, 0.8).model_copy(update={"dispersion": {"others": 4.2}})
    assert set(changes(found(RIGHT, none, RIGHT))) == {"others"}


def test_a_ruleset_that_is_too_wide_does_not_depend_on_the_time() -> None:
    """Others of a class take part after the flood."""
    assert changes(found(light(0, 0.6), flood(0, 0.5), light(0, 0.2))) == {}


def test_large_frames_that_the_sink_missed_were_not_blocked() -> None:
    """Counts of lab01's ex6, results/lab01-forwarding: two thirds of the download were lost behind the DUT."""
    mix = {"listed": 569_136, "customers": 1_138_271, "download": 569_136}
    arrived = {"listed": 0, "customers": 27_161, "download": 4_641}
    sent = sum(mix.values())
    during = Delivery(intended_load=None, sent=sent, offered=mix, arrived=arrived, taken=55_990, sent_on=42_000)
    at_light = {"listed": 294, "customers": 590, "download": 294}
    all_arrive = Delivery(intended_load=1000, sent=1178, offered=at_light, arrived={**at_light, "listed": 0})
    assert changes(found(all_arrive, during, all_arrive)) == {}
    blocked = during.model_copy(update={"sent_on": 35_000})
    assert set(changes(found(all_arrive, blocked, all_arrive))) == {"download"}


@pytest.mark.parametrize(
    ("before", "during", "after", "says"),
    [
        (RIGHT, flood(0, 0), RIGHT, {"others": "it blocks others in the flood and not at a light load"}),
        (RIGHT, flood(0, 0.8), RIGHT, {"others": "it blocks others in the flood and not at a light load"}),
        (RIGHT, flood(0, 0.5, missed=0.3), RIGHT, {"others": "it blocks others in the flood and not at a light load"}),
        (
            light(1, 1),
            flood(1, 0.5, missed=0.3),
            light(1, 1),
            {"": "it blocks packets in the flood and not at a light load"},
        ),
        (RIGHT, flood(0, 1.5), RIGHT, {"others": "it multiplies others in the flood and not at a light load"}),
        (RIGHT, flood(0.01, 1), RIGHT, {"attacker": "it lets through attacker in the flood and not at a light load"}),
        (light(0, 0), flood(0, 1), RIGHT, {"others": "it lets through others after the flood and not before it"}),
        (RIGHT, flood(0, 1), light(1, 1), {"attacker": "it lets through attacker after the flood and not before it"}),
        (RIGHT, flood(0, 1), light(0, 0.5), {"others": "it blocks others after the flood and not before it"}),
    ],
)
def test_load_dependent_behaviour_is_reported(
    before: Delivery, during: Delivery, after: Delivery, says: dict[str, str]
) -> None:
    assert changes(found(before, during, after)) == says


def test_it_fails_the_class_and_the_figure_that_it_improved() -> None:
    cheat = found(RIGHT, flood(0, 0), RIGHT)
    capacity, delivered = judge_exercise(LAB.exercises[0], cheat, a_run([]), METRICS)
    assert (capacity.outcome, delivered.outcome) == (Outcome.FAIL, Outcome.PASS), "the attacker is blocked at all times"
    assert "it blocks others in the flood and not at a light load" in capacity.text


def test_an_exercise_may_declare_it() -> None:
    limits = LAB.exercises[0].model_copy(update={"load_dependent": True})
    capacity, _ = judge_exercise(limits, found(RIGHT, flood(0, 0), RIGHT), a_run([]), METRICS)
    assert capacity.outcome is Outcome.PASS


def test_an_inconclusive_result_stays_inconclusive() -> None:
    busy = found(RIGHT, flood(0, 0), RIGHT).model_copy(update={"problems": ["7 packets were lost on their way"]})
    capacity, _ = judge_exercise(LAB.exercises[0], busy, a_run([]), METRICS)
    assert capacity.outcome is Outcome.INCONCLUSIVE


def test_one_failing_playback_is_not_hidden_by_the_others() -> None:
    """The list lacks one attacker of a thousand, which only the longest play visits."""
    slips = light(0.001, 1, sent=8000)
    _, delivered = judge_exercise(
        LAB.exercises[0],
        found(RIGHT, None, RIGHT).model_copy(update={"deliveries": [RIGHT, RIGHT, slips]}),
        a_run([]),
        METRICS,
    )
    assert delivered.outcome is Outcome.FAIL


# ---- exercises about state -----------------------------------------------------------------------------------------

STATEFUL = LAB.exercises[0].model_copy(update={"stateful": True})


def after_flood(during: Delivery) -> Measured:
    """Nothing is played before the flood."""
    return attempt(400_000, 400_000, 400_000, deliveries=[RIGHT], flood=during)


@pytest.mark.parametrize(
    ("during", "says"),
    [
        (flood(0, 0.95), set()),
        (flood(0, 0.4, missed=0.1), {"others"}),
        (flood(0, 0), {"others"}),
        (flood(0.01, 1), {"attacker"}),
    ],
    ids=["answers before their question", "many are lost", "everything is dropped for some seconds", "all are let in"],
)
def test_a_stateful_ruleset_does_under_load_what_it_does_at_a_light_load(during: Delivery, says: set[str]) -> None:
    assert set(changes(after_flood(during), stateful=True)) == says
    capacity, _ = judge_exercise(STATEFUL, after_flood(during), a_run([]), METRICS)
    assert (capacity.outcome is Outcome.FAIL) == bool(says)
