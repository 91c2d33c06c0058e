# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival as a table: a row for each sweep, a column for each load of the attack."""

from __future__ import annotations

from dataclasses import dataclass

from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.formatting import NOTHING, digits
from fwlab.report.report_rows import Row, case_rows


@dataclass(frozen=True)
class Survivals:
    """Sweeps over the same loads. `rows` hold the sweep's title and a cell, in words, for each of `loads`.

    survivor  the traffic class that was counted
    beside    its own load, in multiples of the baseline's capacity, as the loads are
    """

    survivor: str
    beside: float
    parameter: str
    loads: list[str]
    rows: list[tuple[str, list[str]]]

    def caption(self, baseline: str) -> str:
        """What the figures are shares of."""
        return (
            f"share of the class {self.survivor} that reaches the sink, its own load {self.beside:g}, "
            f"under an {self.parameter} of so many times the capacity of {baseline}"
        )


def survivals(lab: Lab, run: Run) -> list[Survivals]:
    """A table for each group of sweeps that share class, parameter and loads; none if no sweep is about survival."""
    found = {row.id: row for row in case_rows(lab, run)}
    tables: dict[tuple, list[tuple[str, list[str]]]] = {}
    for sweep in lab.sweeps:
        rows = [found.get(case.id) for case in sweep.cases()]
        if sweep.metric == "survival" and any(rows):
            loads = tuple(f"{value:g}" for value in sweep.values)
            key = (sweep.victim_class, sweep.class_load, sweep.parameter, loads)
            tables.setdefault(key, []).append((sweep.title, [_cell(row) for row in rows]))
    return [Survivals(*key[:3], list(key[3]), rows) for key, rows in tables.items()]


def _cell(row: Row | None) -> str:
    measured = row.of("survival") if row else None
    if measured is None or measured.figure is None:
        return NOTHING
    display = measured.metric.display
    share = measured.figure.median * display.factor
    shown = digits(share, 3) if share < 99.95 else f"{share:.0f}"
    return f"{shown} {display.unit}" + (" (in doubt)" if row.problems else "")
