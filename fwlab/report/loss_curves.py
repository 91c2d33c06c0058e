# SPDX-License-Identifier: GPL-2.0-or-later
"""Frame loss curves: the share that was lost at each load, as rows of a table."""

from collections.abc import Iterable
from dataclasses import dataclass

from fwlab.model.benchmarks import TrialResult
from fwlab.report.formatting import digits, percent
from fwlab.report.report_rows import Row

#: The heads of the table: the load that was asked for, what was sent, and the share that was lost (RFC 2544, 26.3).
HEADS = ("load, kpps", "offered, kpps", "lost")


@dataclass(frozen=True)
class LossCurve:
    """The curve of one case, from the maximum offered load down; each row is formatted as HEADS says."""

    case: str
    title: str
    rows: tuple[tuple[str, str, str], ...]


def loss_curves(rows: Iterable[Row]) -> tuple[LossCurve, ...]:
    """The curves of the cases that have one."""
    found = []
    for row in rows:
        benchmarks = row.measured.benchmarks
        if benchmarks is not None and benchmarks.curve:
            trials = [*benchmarks.flat_out[:1], *benchmarks.curve]
            found.append(LossCurve(row.id, row.title, tuple(_cells(trial) for trial in trials)))
    return tuple(found)


def _cells(trial: TrialResult) -> tuple[str, str, str]:
    asked = "flat out" if trial.intended_load is None else digits(trial.intended_load / 1e3)
    return asked, digits(trial.offered_load / 1e3), percent(trial.loss_ratio)
