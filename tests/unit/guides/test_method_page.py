# SPDX-License-Identifier: GPL-2.0-or-later
"""guides/method.md: numbers that it quotes from single runs are those of the named runs.

Its tables are generated; test_docs.py finds stale ones.
"""

from __future__ import annotations

import pytest

from fwlab.judge.statistics import figure
from fwlab.metrics import call_stacks
from fwlab.metrics.call_stacks import shares
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Run
from tests import ROOT
from tools.limits import limits

PAGE = (ROOT / "guides" / "method.md").read_text()


def says(number: str, name: str) -> bool:
    """Whether a row or a paragraph of the page has this number and names this file."""
    rows = [row for row in PAGE.splitlines() if row.startswith("|")]
    return any(number in part and f"`{name}`" in part for part in (*rows, *PAGE.split("\n\n")))


def test_cost_of_a_sink_that_answers() -> None:
    name = "results/lab01-forwarding/2026-11-21-{}.json"
    answered, taken = (Run.model_validate_json((ROOT / name.format(kind)).read_text()) for kind in ("answered", "full"))
    lost = []
    for case in ("ipv6-gro-off", "ipv6"):
        less, whole = (figure(run.case(case), METRICS["capacity"], run.testbed).median for run in (answered, taken))
        lost.append(f"{(1 - less / whole) * 100:.0f}")
    assert says(f"{lost[0]} and {lost[1]} %", name.format("answered"))


@pytest.mark.parametrize(("kept", "share"), [("full", 0.51), ("profile", 0.35)])
def test_share_of_ip_output_in_a_profile(kept: str, share: float) -> None:
    name = f"results/lab01-forwarding/2026-11-21-{kept}.json"
    sampled = Run.model_validate_json((ROOT / name).read_text()).case("forward").stacks
    (whole,) = (part.whole for part in shares(sampled) if part.name == "ip_output")
    assert round(whole, 2) == share
    assert says(f"{share * 100:.0f} %", name)


def test_sampling_rates_are_primes() -> None:
    assert all(rate % factor for rate in call_stacks.RATES for factor in range(2, rate))


def test_unknown_topic_has_no_limits() -> None:
    with pytest.raises(KeyError, match="weather"):
        limits("weather")
