# SPDX-License-Identifier: GPL-2.0-or-later
"""What leaves the DUT must be what came in: foreign frames fail an exercise by name, and so do copies."""

from typing import Any

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.judge.conduct import tracked_in_flood, untracked_in_flood
from fwlab.metrics.registry import METRICS
from fwlab.model.trial import Delivery, States, Tracked
from fwlab.model.verdict import Outcome
from tests.fakes.factories import a_lab, a_run, attempt

LAB = a_lab()


def play(**fields: Any) -> Delivery:
    """Ten packets that may pass, at a light load, recorded at the DUT's NICs."""
    counts = {"offered": {"others": 10}, "arrived": {"others": 10}, "returned": {"others": 0}}
    return Delivery(**{"intended_load": 1000, "sent": 10, **counts, **fields})


def verdicts(**fields: Any) -> list[tuple[Outcome, str]]:
    measured = attempt(250_000, 250_000, 250_000, **fields)
    return [(v.outcome, v.text) for v in judge_exercise(LAB.exercises[0], measured, a_run([]), METRICS)]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"deliveries": [play(foreign={"sent to nobody": 3})]}, "3 packets were sent to nobody"),
        ({"flood": play(intended_load=None, foreign={"sent to nobody": 40})}, "40 packets were sent to nobody"),
        ({"returned": [play(foreign={"made up": 9})]}, "9 packets were made up"),
        ({"deliveries": [play(arrived={"others": 14})]}, "4 packets were sent more than once"),
    ],
    ids=["at a light load", "in the flood", "back to the generator", "copies"],
)
def test_it_fails_by_name_even_if_something_else_went_wrong(fields: dict[str, Any], words: str) -> None:
    for problems in ([], ["12 packets were lost"]):
        found = verdicts(**fields, problems=problems)
        assert {outcome for outcome, _ in found} == {Outcome.FAIL}
        assert all(text == f"what left the DUT is not what came in: {words}" for _, text in found)


def test_two_strays_and_what_sink_and_generator_count_are_no_reason() -> None:
    counted_by_the_sink = play(arrived={"others": 14}, returned={})
    for one in (play(foreign={"sent to nobody": 2}), counted_by_the_sink):
        assert not any("what left" in text for _, text in verdicts(deliveries=[one]))


@pytest.mark.parametrize(
    ("ran", "outcome"),
    [
        # As it was measured of a rule that logs every packet of lab03's flood.
        ({"systemd-journal": 0.98, "[rcu_preempt]": 0.01}, Outcome.FAIL),
        ({"sshd": 0.9, "systemd-journal": 0.1}, Outcome.INCONCLUSIVE),
    ],
)
def test_a_ruleset_that_fills_the_log_fails_and_is_not_inconclusive(ran: dict[str, float], outcome: Outcome) -> None:
    measured = attempt(perturbed_by=ran, problems=["other programs ran on the DUT; 0 of 5 valid trials"])
    for verdict in judge_exercise(LAB.exercises[0], measured, a_run([]), METRICS):
        assert verdict.outcome is outcome
        assert ("98% of the DUT's other time" in verdict.text) == (outcome is Outcome.FAIL)


def states(**fields: int) -> States:
    memory = {"most": 65536, "buckets": 65536, "object_bytes": 256, "slab_bytes": 1 << 20, "bucket_bytes": 1 << 19}
    return States(**{"played": 1000, "held": 1000, **memory, **fields})


@pytest.mark.parametrize(
    ("found", "between", "words"),
    [
        ({"flooded": 5000, "in_flood": 990}, (900, 1100), None),
        ({"flooded": 500, "in_flood": 300}, (900, 1100), None),
        ({"flooded": 5000, "in_flood": 1}, (900, 1100), "it tracks only 1 connections in the flood"),
        ({"held": 1, "flooded": 5000, "in_flood": 800}, (0, 20), "it tracks 800 connections in the flood"),
        ({"held": 1, "flooded": 5000, "in_flood": 2}, (0, 20), None),
        ({}, (900, 1100), None),
    ],
    ids=["all", "as many as came", "none", "too many", "none is wanted", "not counted"],
)
def test_a_ruleset_tracks_in_a_flood_what_it_tracks_at_a_light_load(
    found: dict[str, int], between: tuple[float, float], words: str | None
) -> None:
    said = tracked_in_flood(attempt(states=states(**found)), between)
    assert (said or "").startswith(words or "")
    assert (said is None) == (words is None)


@pytest.mark.parametrize(
    ("found", "light", "words"),
    [
        ({"flooded": 5000, "counted": 4990}, 960, None),
        ({"flooded": 5000, "counted": 250}, 960, "it tracks 5% of the packets in the flood and all of them"),
        ({"flooded": 5000, "counted": 250}, 480, None),
        ({"flooded": 5000, "counted": 250, "held": 65535}, 960, None),
        ({"flooded": 5000}, 960, None),
    ],
    ids=["all", "now and then", "nor at a light load", "a full table", "not counted"],
)
def test_a_ruleset_exempts_no_packets_in_a_flood_alone(found: dict[str, int], light: int, words: str | None) -> None:
    tracked = Tracked(offered={"all": 960}, counted={"all": light})
    said = untracked_in_flood(attempt(states=states(**found), tracked_packets=tracked))
    assert (said or "").startswith(words or "")
    assert (said is None) == (words is None)
