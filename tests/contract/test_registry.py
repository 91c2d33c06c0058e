# SPDX-License-Identifier: GPL-2.0-or-later
"""Registries are complete, unambiguous and immutable."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fwlab.model.registry import IncompleteKind, Registry


@dataclass(frozen=True)
class Kind:
    name: str
    position: int = 0


def test_kinds_come_in_the_order_of_their_positions() -> None:
    kinds = [("a", Kind("late", 2)), ("b", Kind("early", 1)), ("c", Kind("also-early", 1))]
    assert list(Registry("kind", kinds)) == ["also-early", "early", "late"]


def test_an_incomplete_kind_is_refused() -> None:
    with pytest.raises(IncompleteKind, match=r"kind in some\.module: unit missing"):
        Registry("kind", [("some.module", Kind("half"))], required=("unit",))


def test_a_name_can_be_taken_once() -> None:
    with pytest.raises(IncompleteKind, match="'same' is declared twice: in a and in b"):
        Registry("kind", [("a", Kind("same")), ("b", Kind("same"))])


def test_a_registry_cannot_be_changed() -> None:
    registry = Registry("kind", [("a", Kind("one"))])
    with pytest.raises(TypeError):
        registry["two"] = Kind("two")  # type: ignore[index]
