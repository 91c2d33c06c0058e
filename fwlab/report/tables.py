# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of a report other than that of its figures: survival by load, frame loss curves and latency."""

from collections.abc import Iterable
from dataclasses import dataclass

from fwlab.metrics.registry import METRICS
from fwlab.model.benchmarks import LatencyTrial, TrialResult
from fwlab.model.lab import Lab
from fwlab.report.formatting import NOTHING, digits, percent
from fwlab.report.report_rows import Row


@dataclass(frozen=True)
class SurvivalTable:
    """Sweeps over the same loads. Each of `rows` holds a sweep's title and one formatted cell per load.

    victim_class  the traffic class that was counted
    class_load    its own load, in multiples of the baseline's capacity; None if `values` are the load of all traffic
    attack_load   that of the attack, if `values` are not its loads, but those of another parameter
    """

    victim_class: str | None
    class_load: float | None
    attack_load: float | None
    parameter: str
    values: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def caption(self, baseline: str) -> str:
        """What the figures are shares of."""
        share = f"share of the class {self.victim_class} that reaches the sink, "
        if self.class_load is None:
            return f"{share}by the load of all traffic, as a multiple of the capacity of {baseline}"
        share += f"its own load {self.class_load:g}, "
        if self.attack_load is None:
            return f"{share}by {self.parameter}, as a multiple of the capacity of {baseline}"
        return f"{share}under an attack of {self.attack_load:g} times the capacity of {baseline}, by {self.parameter}"


#: The fields of a SurvivalTable before its rows.
_Loads = tuple[str | None, float | None, float | None, str, tuple[str, ...]]


def survival_tables(lab: Lab, rows: Iterable[Row]) -> tuple[SurvivalTable, ...]:
    """A table for each group of sweeps that share class, loads, parameter and values; empty without survival."""
    by_id = {row.id: row for row in rows}
    tables: dict[_Loads, list[tuple[str, tuple[str, ...]]]] = {}
    for sweep in lab.sweeps:
        measured = [by_id.get(case.id) for case in sweep.cases()]
        if METRICS[sweep.metric].of_baseline and any(measured):
            values = tuple(f"{value:g}" for value in sweep.values)
            own = None if sweep.varies == "load" else sweep.class_load
            key = (sweep.victim_class, own, sweep.attack_load, sweep.parameter, values)
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


#: The load that was asked for, what was sent, the share that was lost (RFC 2544, 26.3), and that of the DUT's time.
LOSS_HEADS = ("load, kpps", "offered, kpps", "lost", "DUT busy")
#: The load as a share of PDR, what was sent, times in milliseconds, and the probes without an answer.
LATENCY_HEADS = ("load", "kpps", "least, ms", "median, ms", "90 %, ms", "99 %, ms", "most, ms", "lost")
#: The percentiles of the table; 0 and 100 are the least and the greatest value.
PERCENTILES = (0, 50, 90, 99, 100)


@dataclass(frozen=True)
class LoadTable:
    """One case's table: `name` says of what, and each row is formatted as `heads` says."""

    name: str
    case: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def load_tables(rows: Iterable[Row]) -> tuple[LoadTable, ...]:
    """The tables of the cases that have any."""
    found = []
    for row in rows:
        benchmarks = row.measured.benchmarks
        if benchmarks is not None and benchmarks.curve:
            losses = tuple(_loss(trial) for trial in [*benchmarks.flat_out[:1], *benchmarks.curve])
            found.append(LoadTable("Frame loss", row.id, row.title, LOSS_HEADS, losses))
        if benchmarks is not None and benchmarks.latency:
            latencies = tuple(_latency(trial) for trial in benchmarks.latency)
            found.append(LoadTable("Latency", row.id, row.title, LATENCY_HEADS, latencies))
    return tuple(found)


def _loss(trial: TrialResult) -> tuple[str, ...]:
    asked = "flat out" if trial.intended_load is None else digits(trial.intended_load / 1e3)
    busy = NOTHING if trial.busy_share is None else percent(trial.busy_share)
    return asked, digits(trial.offered_load / 1e3), percent(trial.loss_ratio), busy


def _latency(trial: LatencyTrial) -> tuple[str, ...]:
    share = "none" if not trial.of_pdr else f"{trial.of_pdr * 100:.0f} % of PDR"
    times = [trial.percentile(percentile) for percentile in PERCENTILES]
    shown = (NOTHING if time is None else digits(time * 1e3) for time in times)
    return share, digits(trial.offered_load / 1e3), *shown, percent(trial.unanswered / trial.probes)
