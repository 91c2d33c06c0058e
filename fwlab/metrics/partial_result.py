# SPDX-License-Identifier: GPL-2.0-or-later
"""What one step of a measurement found. Steps return these; the measurer merges them into a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from fwlab.model.results import Measured


@dataclass(frozen=True, kw_only=True)
class PartialResult:
    """Some fields of a result. A subclass adds those that its step finds, under the names they have in `Measured`.

    problems  why a figure of this measurement cannot be trusted
    extra     values of metrics that have no field of their own, by the metric's name
    """

    problems: Sequence[str] = ()
    extra: Mapping[str, Sequence[float]] = field(default_factory=lambda: MappingProxyType({}))

    def added_to(self, measured: Measured) -> Measured:
        """A result with these fields: lists and mappings are extended, other values replaced, None left out."""
        update: dict[str, Any] = {}
        for name in (item.name for item in fields(self)):
            new, before = getattr(self, name), getattr(measured, name)
            if new is None:
                continue
            if isinstance(before, list):
                update[name] = [*before, *new]
            elif isinstance(before, dict):
                update[name] = {**before, **new}
            else:
                update[name] = new
        return measured.model_copy(update=update)
