# SPDX-License-Identifier: GPL-2.0-or-later
"""Check that a run's traffic can be played, before any machine starts."""

from __future__ import annotations

from collections.abc import Iterable

from fwlab.generator import selection as engines
from fwlab.measure.context import RunContext


def refuse_unplayable_traffic(context: RunContext, traffics: Iterable[str | None]) -> None:
    """Raise BadInput, naming the profile, if the engine cannot play one of these. No machine is needed."""
    choice = engines.choose(context.project, context.engine)
    for name in dict.fromkeys(name for name in traffics if name is not None):
        connections = context.tables.connections(name)
        packets = name if connections is None else connections.background
        if packets is not None:
            engines.check(choice, context.tables, packets)
