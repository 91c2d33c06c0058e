# SPDX-License-Identifier: GPL-2.0-or-later
"""Frame loss (RFC 2544, section 26.3): the share that is lost, from the maximum offered load down to where none is."""

from collections.abc import Sequence

from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession
from fwlab.metrics.offered_load import FLAT_OUT, LIGHT_LOAD, at_load, found, with_found
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Phase, Step
from fwlab.model.benchmarks import TrialResult
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts

#: The loads after the first, as shares of what the generator sends flat out, or of twice what the DUT processes then.
#: RFC 2544: steps of at most 10 %.
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
#: The curve ends with so many trials without loss, one after the other.
WITHOUT_LOSS = 2


class FrameLoss(MeasurableMetric):
    """Its value is the loss at the maximum offered load; the result keeps the whole curve."""

    name = "frame_loss"
    unit = "ratio"
    position = 15
    display = Display("frame loss at maximum offered load", "%", 100.0)
    tolerance = Tolerance(absolute=0.02)
    needs_clock = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [trial.loss_ratio for trial in found(measured).flat_out]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [LIGHT_LOAD, FLAT_OUT, CURVE]


METRIC = FrameLoss()


def _curve(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    measurer, flat_out = at_load(session, spec, so_far), found(so_far).flat_out
    if measurer is None or not flat_out:
        return so_far
    ceiling = measurer.ceiling(flat_out)
    trials: list[TrialResult] = []
    for share in SHARES:
        trials.append(measurer.measure(measurer.terms.trial_s, share * ceiling))
        if len(trials) >= WITHOUT_LOSS and not any(trial.lost for trial in trials[-WITHOUT_LOSS:]):
            break
    return with_found(so_far, curve=trials)


CURVE = Step(Phase.LOSS_CURVE, _curve, despite_problems=False)
