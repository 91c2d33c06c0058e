# SPDX-License-Identifier: GPL-2.0-or-later
"""The measurer: the order of its steps, and how it merges their partial results."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.measure import measurer
from fwlab.measure.measurer import Measurer
from fwlab.metrics.call_stacks import PROFILE
from fwlab.metrics.capacity import FLOOD
from fwlab.metrics.connection_rate import CONNECT
from fwlab.metrics.delivery import AFTER_FLOOD, BEFORE_FLOOD
from fwlab.metrics.measurement import MeasurementSpec, Nodes, Phase, Step
from fwlab.metrics.state_table import COUNT, FILL
from fwlab.metrics.survival import SURVIVE_PACED
from fwlab.model.errors import Refused
from fwlab.model.results import Measured, Values


def spec(*metrics: str, **fields: Any) -> MeasurementSpec:
    return MeasurementSpec("one", "One", "drop", [], list(metrics), traffic="flood", **fields)


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        (spec("capacity"), [FLOOD]),
        (spec("generator", "capacity", sampled=True), [FLOOD, PROFILE]),
        (spec("delivered", "capacity"), [BEFORE_FLOOD, FLOOD, AFTER_FLOOD]),
        (spec("delivered", load_dependent=True), [FLOOD, AFTER_FLOOD]),
        (spec("survival", "load_time"), [SURVIVE_PACED]),
        (spec("entries", "state_bytes", "states"), [FILL, COUNT]),
    ],
)
def test_each_step_is_taken_once_in_the_order_of_the_phases(asked: MeasurementSpec, steps: list[Step]) -> None:
    assert measurer._steps(asked, "packets", "instructions") == steps


def test_connections_measure_only_their_own_metrics() -> None:
    """Loading measures the load time."""
    asked = spec("delivered", "connections", "capacity", "load_time", sampled=True)
    assert measurer._steps(asked, "connections", "host") == [CONNECT]


def on_nodes(
    *steps: Step,
    monkeypatch: pytest.MonkeyPatch,
    asked: MeasurementSpec | None = None,
    left: tuple[str, ...] = (),
    emit: Callable[[Any], None] = lambda _event: None,
) -> Measured:
    """A measurement of these steps, on a DUT whose reset leaves something behind."""
    nodes: Any = SimpleNamespace(reset=lambda next_ruleset=None: list(left), plays_packets=lambda _traffic: False)
    monkeypatch.setattr(measurer, "_steps", lambda *_: steps)
    on = Measurer(Nodes(nodes, nodes, nodes, nodes, {}, lambda _level: nodes, 1, emit=emit))
    return on.measure(asked or spec("capacity"))


def finds(phase: Phase = Phase.FLOOD, despite_problems: bool = True, **extra: list[float]) -> Step:
    return Step(phase, lambda _session, _spec, so_far: so_far.plus(Values(extra=extra)), despite_problems)


def test_each_step_is_told_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    on_nodes(finds(Phase.STATES), finds(Phase.AFTER_FLOOD), monkeypatch=monkeypatch, emit=told.append)
    assert [event.phase for event in told] == ["loading", "states", "after flood"]


def test_after_a_problem_only_steps_that_do_not_need_the_figures_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = finds(despite_problems=False, a=[1.0]), finds(b=[2.0])
    found = on_nodes(*steps, left=("table ip f",), monkeypatch=monkeypatch)
    assert found.extra == {"b": [2.0]}
    assert "table ip f" in found.problems[0]


def test_nothing_more_is_measured_once_the_result_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = spec("capacity", decided=lambda so_far: "a" in so_far.extra)
    found = on_nodes(finds(Phase.BEFORE_FLOOD, a=[1.0]), finds(b=[2.0]), asked=asked, monkeypatch=monkeypatch)
    assert found.extra == {"a": [1.0]}


def test_results_before_a_refusal_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Measured:
        raise Refused("line 2 failed")

    found = on_nodes(finds(a=[1.0]), Step(Phase.LAST, refuse), monkeypatch=monkeypatch)
    assert (found.extra, found.refused) == ({"a": [1.0]}, "line 2 failed")


def test_each_phase_is_a_play_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engine, sink and steps have the traffic of the same play; the session's own comes back."""
    seen: list[Any] = []

    def store(play: int) -> Any:
        plays = {"of_play": lambda _traffic, other, _first: store(other), "plays_packets": lambda _traffic: True}
        return SimpleNamespace(play=play, flows=lambda _traffic: play, **plays)

    nodes: Any = SimpleNamespace(
        reset=lambda next_ruleset=None: [],
        use=lambda chosen, _traffic: seen.append(chosen.play),
        set_flows=seen.append,
        absorb_all=lambda _classes: None,
    )

    def look(session: Any, _spec: object, so_far: Measured) -> Measured:
        seen.append(session.nodes.store.play)
        return so_far

    phases = Phase.BEFORE_FLOOD, Phase.FLOOD, Phase.AFTER_FLOOD
    monkeypatch.setattr(measurer, "_steps", lambda *_: [Step(phase, look) for phase in phases])
    on = Measurer(Nodes(nodes, nodes, nodes, store(0), {}, lambda _level: nodes, 1))
    on.measure(spec("survival"))
    assert seen == [-10] * 3 + [0] * 3 + [20] * 3
    assert on._session.nodes.store.play == 0


@pytest.mark.parametrize(("metrics", "loads"), [(("survival",), 1), (("survival", "memory"), 2)])
def test_a_ruleset_that_memory_has_taken_away_is_loaded_again(
    metrics: tuple[str, ...], loads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(measurer.load_time, "load", lambda _nodes, spec: loaded.append(spec.id) or [])
    monkeypatch.setattr(measurer, "_steps", lambda *_: [])
    nodes: Any = SimpleNamespace(reset=lambda next_ruleset=None: [], plays_packets=lambda _traffic: False)
    on = Measurer(Nodes(nodes, nodes, nodes, nodes, {}, lambda _level: nodes, 1))
    on.measure(spec(*metrics))
    on.measure(spec("survival"))
    assert len(loaded) == loads
