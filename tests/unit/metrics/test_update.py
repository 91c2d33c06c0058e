# SPDX-License-Identifier: GPL-2.0-or-later
"""Updates: what is loaded in which order, what is timed, and what is counted before."""

from types import SimpleNamespace

import pytest

from fwlab.judge.statistics import scale
from fwlab.metrics import update
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import Delivery
from fwlab.rulesets.registry import in_loading_order
from tests.fakes.factories import testbed

RULES, UPDATE = RulesetFile("rules.nft", "nft", "table ip a {}"), RulesetFile("update.iptables", "iptables", "*nat")
BEFORE = Delivery(intended_load=100.0, sent=10, offered={"a": 4, "b": 6}, arrived={"a": 4, "b": 0})


class FakeDut:
    """Takes half a second for each file of an update, and notes what it is asked for."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def unload(self) -> None:
        self.done.append("unload")

    def load(self, files: list[RulesetFile], *, timed: bool = True) -> list[list[float]]:
        self.done.append(([file.name for file in files], timed))
        return [[0.5] * len(files)]

    def drain(self) -> None:
        self.done.append("drain")

    def forget_states(self) -> None:
        self.done.append("forget")


def measured(files: list[RulesetFile], metrics: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[FakeDut, Measured]:
    dut = FakeDut()
    session = MeasuringSession(SimpleNamespace(dut=dut, levels=1, pacing=None))
    monkeypatch.setattr(update, "counted", lambda *_: dut.done.append("count") or (BEFORE, []))
    spec = MeasurementSpec("x", "X", "x", files, metrics, traffic="any")
    return dut, update.UPDATE.run(session, spec, Measured(id="x", title="X", ruleset="x", ruleset_hash="0"))


def test_an_update_is_loaded_last_whatever_its_kind() -> None:
    assert [file.name for file in in_loading_order([UPDATE, RULES])] == ["rules.nft", "update.iptables"]


def test_an_update_is_timed_on_top_of_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    dut, found = measured([RULES, UPDATE], ["update"], monkeypatch)
    one = ["unload", (["rules.nft"], False), (["update.iptables"], True)]
    assert dut.done == one * 3
    assert METRICS["update"].values(found, testbed()) == [0.5 / scale(testbed())] * 3


def test_packets_are_counted_before_the_first_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """No flow is known then: it would go where the update has sent it."""
    dut, found = measured([RULES, UPDATE], ["update", "before_update"], monkeypatch)
    assert dut.done[:5] == ["unload", (["rules.nft"], False), "drain", "forget", "count"]
    assert [METRICS["before_update"].values(found, testbed(), name) for name in "abc"] == [[1.0], [0.0], []]


def test_a_ruleset_without_an_update_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    dut, found = measured([RULES], ["update"], monkeypatch)
    assert dut.done == ["unload", (["rules.nft"], False)]
    assert METRICS["update"].values(found, testbed()) == [0.0]
