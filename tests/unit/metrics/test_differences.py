# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences from an exercise's start: found by this machine's own kernel, and said by the check."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fwlab.judge.checks import CHECKS
from fwlab.metrics.differences import COMPARE
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.price import PRICE
from fwlab.metrics.registry import METRICS
from fwlab.model.check import STANDARD_CHECKS, Check
from fwlab.model.errors import Refused
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile
from fwlab.model.verdict import Outcome
from fwlab.own import bench_client
from tests.fakes.factories import a_run
from tests.unit.own.kernel import lacks

RULES = "table inet f {{\nchain c {{\ntype filter hook forward priority 0; policy drop;\n{}\n}}\n}}\n"
START = "tcp dport 80-90 counter packets 3 bytes 180 accept\nct state established,related accept"
BLANK = Measured(id="e", title="e", ruleset="e", ruleset_hash="", metric="differences", also=["price"])

pytestmark = pytest.mark.skipif(bool(lacks()), reason=lacks())


def files(rules: str) -> list[RulesetFile]:
    return [RulesetFile("rules.nft", "nft", RULES.format(rules))]


def found(step, rules: str) -> Measured:
    nodes = SimpleNamespace(
        bench=lambda: bench_client.here, store=SimpleNamespace(seed=1), emit=lambda _: None, ns_per_instruction=1
    )
    spec = MeasurementSpec("e", "e", "e", files(rules), ["differences"], apart=True, compared_with=files(START))
    return step.run(SimpleNamespace(nodes=nodes), spec, BLANK)


def verdict(rules: str):
    check = Check.model_validate({**STANDARD_CHECKS["behaves-alike"], "source": ["S1"]})
    measured = found(COMPARE, rules)
    return CHECKS[check.kind].judge(check, measured, a_run([], [measured]), METRICS)


def test_the_same_in_another_order_passes() -> None:
    judged = verdict("\n".join(START.splitlines()[::-1]))
    assert (judged.outcome, judged.value) == (Outcome.PASS, 0)


def test_a_border_fails_with_the_packet_and_what_decided_about_it() -> None:
    judged = verdict(START.replace("80-90", "80-91"))
    assert judged.outcome is Outcome.FAIL
    for said in (
        "fate: dropped / forwarded",
        ":91 SYN",
        "the start decides by `policy drop of c",
        "yours decides by `tcp",
    ):
        assert said in judged.text


def test_a_ruleset_that_a_tool_refuses_is_refused_with_its_words() -> None:
    with pytest.raises(Refused, match="rules.nft: nft said"):
        found(COMPARE, "tcp dport wat accept")


def test_every_packet_of_the_start_is_timed_under_the_other_rules() -> None:
    [nanoseconds] = METRICS["price"].values(found(PRICE, START), a_run([]).testbed)
    assert nanoseconds > 0
