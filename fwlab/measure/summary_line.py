# SPDX-License-Identifier: GPL-2.0-or-later
"""One measurement in a line, while the others go on."""

from fwlab.judge.statistics import CONFIDENCE, figure
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured, Run


def summary(measured: Measured, run: Run) -> str:
    """One measurement in a few words, for the progress line."""
    if measured.refused:
        return f"refused: {measured.refused.splitlines()[0]}"
    if measured.problems:
        return measured.problems[0].splitlines()[0]
    figures = ((METRICS[name], figure(measured, METRICS[name], run.testbed)) for name in measured.metrics)
    metric, value = next(((metric, found) for metric, found in figures if found), (None, None))
    if metric is None or value is None:
        return "measured" if measured.deliveries else "loaded"
    scatter = f"spread {value.spread:.2%}" if value.several else ""
    if value.counts is not None and not scatter:
        scatter = f"{value.counts[0]:,} of {value.counts[1]:,} packets"
    if run.testbed.clock == "host" and value.uncertainty is not None:
        scatter = f"{CONFIDENCE:.0%} interval {value.uncertainty:.2%} wide"
    rounded = float(f"{value.median * metric.display.factor:.4g}")
    shown = f"{rounded:,.10g} {metric.display.unit}".strip()
    return f"{shown}, {scatter}" if scatter else shown
