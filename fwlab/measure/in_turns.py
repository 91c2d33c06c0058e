# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure a case and its baseline in turns, A B A B, so that what drifts on the host drifts for both alike.

It is done where the DUT's clock is the host's: its frequency, its temperature and its other work change in minutes.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from fwlab.judge.statistics import fewest_values
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import Overdue
from fwlab.model.results import Measured

Measure = Callable[[MeasurementSpec, float | None], Measured]


def in_turns(measure: Measure, spec: MeasurementSpec, limit_s: float | None = None) -> Measured:
    """Measure by at least as many trials as a confidence interval needs, each in a round of its own.

    Without a case beside it, the trials follow each other. A round has one trial of the case and one of the other;
    everything else that the case asks for is measured in the first. Ends early after a problem. Raises Overdue after
    `limit_s` seconds, and what `measure` raises.
    """
    count = max(spec.trial.count, fewest_values())
    if spec.beside is None:
        return measure(replace(spec, trial=spec.trial.changed(count)), limit_s)
    ends = None if limit_s is None else time.monotonic() + limit_s
    first = replace(spec, trial=spec.trial.changed(1), beside=None)
    again = replace(first, metrics=[name for name in spec.metrics if METRICS[name].interleaved])
    other = replace(spec.beside, id=f"{spec.beside.id} beside {spec.id}", trial=spec.beside.trial.changed(1))
    found = measure(first, _left(ends, spec))
    beside = measure(other, _left(ends, spec)).model_copy(update={"id": spec.beside.id})
    for _ in range(count - 1):
        if any(one.problems or one.unsaturated or one.refused or one.lost for one in (found, beside)):
            break
        found = found.joined(measure(again, _left(ends, spec)))
        beside = beside.joined(measure(other, _left(ends, spec)))
    return found.model_copy(update={"beside": beside})


def _left(ends: float | None, spec: MeasurementSpec) -> float | None:
    """Seconds that are left. Raises Overdue if none are."""
    if ends is None:
        return None
    left = ends - time.monotonic()
    if left <= 0:
        raise Overdue(f"{spec.id} was not measured in its time")
    return left
