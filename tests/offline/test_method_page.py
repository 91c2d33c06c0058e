# SPDX-License-Identifier: GPL-2.0-or-later
"""guides/method.md names the limits that measuring and judging have: its numbers are those of the code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from fwlab.dut.linux.agent.counting import MOST_OWN
from fwlab.judge import load_dependence
from fwlab.judge.statistics import MOST_IDLE, MOST_IDLE_LOOP, MOST_OTHER, MOST_OTHER_LOOP, figure
from fwlab.judge.verdicts import LARGEST_SPREAD, WORTH_AGAIN
from fwlab.measure.session import EXERCISE_S
from fwlab.metrics import connection_rate, delivery, perf_profile, state_table, survival
from fwlab.metrics.call_stacks import shares
from fwlab.metrics.capacity import IN_VAIN, MOST_BACK
from fwlab.model.declared_traffic import Connections
from fwlab.model.metric import Metric
from fwlab.model.results import Run
from fwlab.testbed.kinds.virtual import CLOSED_LOOP, OPEN_LOOP

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "guides" / "method.md"


@cache
def words() -> str:
    """The page as one line."""
    return " ".join(PAGE.read_text().split())


def test_method_names_the_limits_that_judging_has() -> None:
    text = words()
    assert f"further apart than {LARGEST_SPREAD * 100:g} %" in text
    assert f"what comes back all the same (more than {MOST_BACK * 100:g} %)" in text
    assert f"more than {WORTH_AGAIN * 100:g} % apart is measured once" in text
    assert f"idle for more than {MOST_IDLE * 100:g} %" in text
    assert f"packets took more than {MOST_OTHER * 100:g} %" in text
    assert IN_VAIN == 2
    assert "more than twice as many of them as trials are wanted, the DUT is slowed by one" in text


def test_a_sink_that_answers_cost_what_the_page_says() -> None:
    name = "results/lab01-forwarding/2026-11-21-{}.json"
    answered, taken = (Run.model_validate_json((ROOT / name.format(kind)).read_text()) for kind in ("answered", "full"))
    lost = []
    for case in ("ipv6", "ipv6-gro-off"):
        less, whole = (figure(run.case(case), Metric.CAPACITY, run.testbed).median for run in (answered, taken))
        lost.append(f"{1 - less / whole:.0%}".removesuffix("%"))
    assert f"{lost[1]} and {lost[0]} %, of two cases with IPv6 (`{name.format('answered')}`)" in words()


def test_method_tells_of_connections_what_is_done() -> None:
    text = words()
    *shares, last = (f"{level.share * 100:g}" for level in CLOSED_LOOP)
    assert f"to {', '.join(shares)} and {last} % of real time" in text
    assert f"turns are {CLOSED_LOOP[0].run_s * 1000:g} ms here from the first step on" in text
    turns = [f"{seconds * 1000:g}" for seconds in (level.run_s for level in OPEN_LOOP[1:])]
    assert f"turns of {turns[0]}, {turns[1]} and {turns[2]} ms" in text
    idle, other = (f"up to {share * 100:g} %" for share in (MOST_IDLE_LOOP, MOST_OTHER_LOOP))
    assert f"idle for {idle} and may have {other} of something else" in text
    assert f"packets have {MOST_IDLE * 100:g} and {MOST_OTHER * 100:g} %" in text
    assert f"({Connections().concurrent}, if `lab.yml` does not say otherwise)" in text
    assert f"at least {connection_rate.LEAST_PACKETS} on both links" in text
    assert f"wrk's side sent more than {connection_rate.MOST_AGAIN['wrk'] * 100:g} % as many segments again" in text
    doubtful = (
        f"by more than {connection_rate.MOST_APART * 100:g} % (beyond those that were open, and what was sent again)"
    )
    assert doubtful in text


def test_method_tells_of_light_loads_and_survival_what_is_done() -> None:
    text = words()
    assert delivery.LIGHT == (1 / 4, 1 / 10, 1 / 25, 1 / 60, 1 / 60)
    assert "at a quarter, a tenth, a twenty-fifth, and twice at a sixtieth" in text
    assert f"lost more than {delivery.STRAY} behind it" in text
    assert state_table.LOADS[0] == 0.65
    assert "at two thirds of what the DUT was seen to carry" in text
    assert f"where more than {state_table.PLAYED_AGAIN * 100:g} % of them did not come in, once more" in text
    assert f"more than {state_table.MOST_LOST * 100:g} % of them did not come in" in text
    assert f"less than {survival.KEPT_UP:.0%}".replace("%", " %") in text
    assert f"fewer than {survival.FEWEST} packets of the class" in text
    assert f"has taken {survival.RINGS} rings full" in text
    assert f"and {survival.LEAST} to {survival.ENOUGH} packets of the class" in text
    assert f"by no more than {survival.CHANCE:g}; or for {survival.LONGEST_S:g} seconds" in text


def test_method_tells_what_is_compared_between_flood_and_light_load() -> None:
    text = words()
    assert f"Before the flood it is {delivery.FIRST_PACKETS} packets" in text
    assert f"may differ by {load_dependence.SYSTEMATIC:.0%}".replace("%", " %") in text
    assert f"by {load_dependence.DEVIATIONS:g} standard deviations" in text
    assert f"{load_dependence.STRAY} packets and {load_dependence.STRAY_SHARE * 100:g} % of the class" in text
    assert f"took fewer than {load_dependence.FEWEST} packets in the flood" in text
    assert f"One exercise may take {EXERCISE_S:g} s" in text
    assert f"and at most {MOST_OWN * 100:g} %, does work" in text


def test_method_tells_of_sampling_what_is_done() -> None:
    text, rates = words(), perf_profile.RATES
    assert f"at {len(rates)} rates at once, primes from {min(rates)} to {max(rates)} in a second" in text
    assert all(rate % factor for rate in rates for factor in range(2, rate))
    assert f"for {perf_profile.SECONDS:g} seconds of the DUT's clock" in text


@pytest.mark.parametrize(
    ("kept", "share", "says"),
    [
        ("full", 0.51, "had 51 % of the samples of plain forwarding ({name})"),
        ("profile", 0.35, "it has 35 % ({name})"),
    ],
)
def test_the_shares_that_method_quotes_are_those_of_the_runs_it_names(kept: str, share: float, says: str) -> None:
    name = f"results/lab01-forwarding/2026-11-21-{kept}.json"
    assert says.format(name=f"`{name}`") in words()
    sampled = Run.model_validate_json((ROOT / name).read_text()).case("forward").stacks
    (whole,) = (part.whole for part in shares(sampled) if part.name == "ip_output")
    assert round(whole, 2) == share
