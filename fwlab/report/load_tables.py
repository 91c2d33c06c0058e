# SPDX-License-Identifier: GPL-2.0-or-later
"""What was found load by load, as rows of a table: frame loss curves and latency."""

from collections.abc import Iterable
from dataclasses import dataclass

from fwlab.model.benchmarks import LatencyTrial, TrialResult
from fwlab.report.formatting import NOTHING, digits, percent
from fwlab.report.report_rows import Row

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
