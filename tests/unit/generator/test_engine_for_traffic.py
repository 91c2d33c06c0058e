# SPDX-License-Identifier: GPL-2.0-or-later
"""An engine that cannot play a traffic as it is declared is not chosen for it, and says why where it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.generator import selection as engines
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure import session as sessions
from fwlab.measure.context import RunContext
from fwlab.measure.plan import reject_unplayable_traffic, with_able_engine
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.events import Event, Warned
from fwlab.model.lab import Lab
from fwlab.testbed.selection import TestbedRequest
from tests.checkout import PROJECT, TOPOLOGY, lab_named

ENDS = "new: the profile ends, and TRex does not repeat it"
ALIKE = "segments: TRex does not number the segments of TCP"
ORDERED = "tcp-train: the order of its frames matters, and TRex does not keep it between streams"


def context(lab: str, engine: str = "auto") -> RunContext:
    return RunContext(PROJECT, TOPOLOGY, lab_named(lab), TestbedRequest("virtual"), engine=engine)


@pytest.fixture
def trex(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that holds TRex."""
    monkeypatch.setattr("fwlab.generator.trex.engine.trex_in_image", lambda _: "v9.99")


@pytest.mark.usefixtures("trex")
@pytest.mark.parametrize(
    ("lab", "traffics", "why"),
    [
        ("lab01-forwarding", ["udp", "udp-train"], ""),
        ("lab01-forwarding", ["udp", "tcp-train"], ORDERED),
        ("lab01-forwarding", ["download"], ORDERED.replace("tcp-train", "download")),
        ("lab02-conntrack", ["web"], ""),
        ("lab07-stateless", ["new", None], ENDS),
        ("lab03-ipset", ["attack"], ""),
        ("lab04-nftables", ["segments"], ALIKE),
    ],
)
def test_auto_plays_what_trex_cannot_by_the_replay_engine(lab: str, traffics: list[str | None], why: str) -> None:
    asked = context(lab)
    found = with_able_engine(asked, traffics)
    assert (found.engine, found.engine_why) == (("replay", f"trex cannot play {why}") if why else ("auto", ""))
    assert found.store is asked.store, "what was loaded is not loaded again"
    reject_unplayable_traffic(found, traffics)


@pytest.mark.usefixtures("trex")
@pytest.mark.parametrize(
    ("lab", "traffic", "why"), [("lab01-forwarding", "tcp-train", ORDERED), ("lab07-stateless", "new", ENDS)]
)
def test_an_engine_that_was_asked_for_refuses_in_a_sentence(lab: str, traffic: str, why: str) -> None:
    asked = context(lab, "trex")
    assert with_able_engine(asked, [traffic]) is asked
    with pytest.raises(BadInput) as refused:
        reject_unplayable_traffic(asked, [traffic])
    assert refused.value.message == why
    assert "--engine replay" in refused.value.hint
    reject_unplayable_traffic(context("lab04-nftables", "trex"), ["segments"])  # segments as the profile has them


@pytest.mark.usefixtures("trex")
def test_a_wrong_profile_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other engine can play it either."""
    asked = context("lab03-ipset")

    def wrong(*_: object) -> None:
        raise BadInput("mix.py, line 3: NameError: name 'x' is not defined", "fix it")

    monkeypatch.setattr(TrafficStore, "streams", wrong)
    found = with_able_engine(asked, ["attack"])
    assert found is asked
    with pytest.raises(BadInput, match="NameError"):
        reject_unplayable_traffic(found, ["attack"])


def test_nothing_is_loaded_where_there_is_no_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.generator.trex.engine.trex_in_image", lambda _: None)
    monkeypatch.setattr(TrafficStore, "table", lambda *_: pytest.fail("a table was built"))
    assert with_able_engine(context("lab07-stateless"), ["new"]).engine == "auto"


@pytest.mark.usefixtures("trex")
def test_one_line_says_which_engine_plays_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Event] = []

    def machines(*_: object) -> None:
        raise CannotMeasure("far enough")

    monkeypatch.setattr(sessions, "Machines", machines)
    for asked in (context("lab07-stateless"), context("lab07-stateless", "replay")):
        with (
            pytest.raises(CannotMeasure, match="far enough"),
            sessions._machines_up(with_able_engine(asked, ["new"]), told.append),
        ):
            pass
    assert told == [Warned(f"engine: replay, because trex cannot play {ENDS}")]


def test_a_choice_that_nobody_asked_for_is_no_request_for_an_engines_own_tcp(trex: None) -> None:
    choice = engines.choose(PROJECT)
    assert (choice.name, choice.asked) == ("trex", False)


def test_every_ordered_traffic_has_a_profile() -> None:
    with pytest.raises(ValueError, match="in_order belongs to a profile"):
        Lab.model_validate({"traffic": {"web": {"connections": {}, "in_order": True}}})


def test_the_labs_say_which_traffic_needs_its_order() -> None:
    found = {
        (path.parent.name, name)
        for path in sorted(Path(PROJECT.root).glob("labs/lab*/lab.yml"))
        for name, traffic in lab_named(path.parent.name).traffic.items()
        if traffic.in_order
    }
    assert found == {("lab01-forwarding", name) for name in ("tcp-train", "download", "everything")}
