# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival as a table: one row per sweep, one column per load of the attack, or per value of another parameter."""

from collections.abc import Iterable
from dataclasses import dataclass

from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.report.formatting import NOTHING, digits
from fwlab.report.report_rows import Row


@dataclass(frozen=True)
class SurvivalTable:
    """Sweeps over the same loads. Each of `rows` holds a sweep's title and one formatted cell per load.

    victim_class  the traffic class that was counted
    class_load    its own load, in multiples of the baseline's capacity
    attack_load   that of the attack, if `values` are not its loads, but those of another parameter
    """

    victim_class: str | None
    class_load: float
    attack_load: float | None
    parameter: str
    values: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def caption(self, baseline: str) -> str:
        """What the figures are shares of."""
        share = f"share of the class {self.victim_class} that reaches the sink, its own load {self.class_load:g}, "
        if self.attack_load is None:
            return f"{share}under an {self.parameter} of so many times the capacity of {baseline}"
        return f"{share}under an attack of {self.attack_load:g} times the capacity of {baseline}, by {self.parameter}"


def survival_tables(lab: Lab, rows: Iterable[Row]) -> tuple[SurvivalTable, ...]:
    """A table for each group of sweeps that share class, loads, parameter and values; empty without survival."""
    by_id = {row.id: row for row in rows}
    tables: dict[tuple[str | None, float, float | None, str, tuple[str, ...]], list[tuple[str, tuple[str, ...]]]] = {}
    for sweep in lab.sweeps:
        measured = [by_id.get(case.id) for case in sweep.cases()]
        if METRICS[sweep.metric].of_baseline and any(measured):
            values = tuple(f"{value:g}" for value in sweep.values)
            key = (sweep.victim_class, sweep.class_load, sweep.attack_load, sweep.parameter, values)
            tables.setdefault(key, []).append((sweep.title, tuple(_cell(row) for row in measured)))
    return tuple(SurvivalTable(*key, tuple(found)) for key, found in tables.items())


def _cell(row: Row | None) -> str:
    measured = row.of(row.measured.metric) if row else None
    if row is None or measured is None or measured.figure is None:
        return NOTHING
    display = measured.metric.display
    share = measured.figure.median * display.factor
    shown = digits(share, 3) if share < 99.95 else f"{share:.0f}"
    return f"{shown} {display.unit}" + (" (in doubt)" if row.problems else "")
