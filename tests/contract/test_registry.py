# SPDX-License-Identifier: GPL-2.0-or-later
"""Every registry is complete, unambiguous and immutable, whatever its kinds are."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.dut.protocol import Dut
from fwlab.dut.registry import DUTS
from fwlab.dut.system import DutSystem
from fwlab.generator.protocol import EngineKind
from fwlab.generator.selection import ENGINES
from fwlab.judge.checks import CHECKS, CheckKind
from fwlab.metrics.measurement import MeasurableMetric
from fwlab.metrics.registry import METRICS
from fwlab.model.registry import IncompleteKind, Registry, required_by
from fwlab.report.files import RENDERERS, Renderer
from fwlab.rulesets.kind import RulesetKind
from fwlab.rulesets.registry import KINDS
from fwlab.testbed import testbeds
from fwlab.testbed.link_kinds import LINKS, LinkKind

REGISTRIES: list[tuple[Registry[Any], type]] = [
    (KINDS, RulesetKind),
    (METRICS, MeasurableMetric),
    (LINKS, LinkKind),
    (testbeds.TESTBEDS, testbeds.TestbedKind),
    (DUTS, DutSystem),
    (ENGINES, EngineKind),
    (CHECKS, CheckKind),
    (RENDERERS, Renderer),
]
each_registry = pytest.mark.parametrize(
    ("registry", "protocol"), REGISTRIES, ids=[registry.concept for registry, _ in REGISTRIES]
)


@dataclass(frozen=True)
class Kind:
    name: str
    position: int = 0


@each_registry
def test_every_kind_has_all_that_its_protocol_asks(registry: Registry[Any], protocol: type) -> None:
    asked = required_by(protocol)
    assert "name" in asked
    assert {name: kind.name for name, kind in registry.items()} == {name: name for name in registry}
    assert [(name, one) for name, kind in registry.items() for one in asked if not hasattr(kind, one)] == []
    assert list(registry.origins) == list(registry)


@each_registry
def test_a_kind_that_lacks_anything_is_refused(registry: Registry[Any], protocol: type) -> None:
    asked = required_by(protocol)
    whole = next(iter(registry.values()))
    for lacking in asked:
        half = SimpleNamespace(**{name: getattr(whole, name) for name in asked if name != lacking})
        with pytest.raises(IncompleteKind, match=rf"{registry.concept} in some\.module: {lacking} missing"):
            Registry(registry.concept, [("some.module", half)], asked)


def test_kinds_come_in_the_order_of_their_positions() -> None:
    kinds = [("a", Kind("late", 2)), ("b", Kind("early", 1)), ("c", Kind("also-early", 1))]
    assert list(Registry("kind", kinds)) == ["also-early", "early", "late"]


def test_a_name_can_be_taken_once() -> None:
    with pytest.raises(IncompleteKind, match="'same' is declared twice: in a and in b"):
        Registry("kind", [("a", Kind("same")), ("b", Kind("same"))])


@pytest.mark.parametrize("system", DUTS)
def test_a_connection_has_all_that_a_dut_is_asked_for(system: str) -> None:
    asked = [name for name in vars(Dut) if not name.startswith("_") or name in ("__enter__", "__exit__")]
    dut = DUTS[system].connect(None, [])  # type: ignore[arg-type]
    assert [name for name in asked if not callable(getattr(dut, name, None))] == []
