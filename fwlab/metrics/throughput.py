# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput and frame loss (RFC 1242, RFC 2544).

One search finds the highest rate without loss (NDR), and the highest with 0.5 % of loss (PDR). Frame loss (section
26.3) is the share that is lost, from the maximum offered load down to where none is.
"""

from collections.abc import Sequence

from fwlab.metrics.measurement import MeasurableMetric, MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.metrics.offered_load import BUDGET_S, FLAT_OUT, LIGHT_LOAD, NDR, PDR, Bounds, at_load, found, with_found
from fwlab.model.benchmarks import GoalBounds, RateSearch, TrialResult
from fwlab.model.events import BoundsNarrowed
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts

#: The lowest load of the search (pps): of 200 packets, one is the loss that PDR allows.
MIN_PPS = 200.0
NAMES = {NDR: "NDR", PDR: "PDR"}


class Throughput(MeasurableMetric):
    """The highest load of which at most a given share was lost, and what the DUT forwarded at it."""

    unit = "pps"
    tolerance = Tolerance(share=0.05, ratio=0.1)
    needs_clock = True
    below_ceiling = True

    def __init__(self, name: str, position: int, label: str, loss_ratio: float) -> None:
        self.name, self.position, self.loss_ratio = name, position, loss_ratio
        self.display = Display(label, "kpps", 1e-3)

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        goals = [one.goal(self.loss_ratio) for one in found(measured).searches]
        return [goal.throughput for goal in goals if goal is not None and goal.throughput is not None]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [LIGHT_LOAD, FLAT_OUT, SEARCH]

    def doubts(self, measured: Measured) -> list[str]:
        reasons = [doubt_about(one, one.goal(self.loss_ratio)) for one in found(measured).searches]
        return [reason for reason in reasons if reason]


def doubt_about(done: RateSearch, goal: GoalBounds | None) -> str | None:
    """Why the bounds of this goal are not the DUT's throughput; None if they are."""
    if goal is None:
        return "the search had no such goal"
    name = NAMES[goal.loss_ratio]
    if not done.ended:
        return f"{name}: the search was not done after {done.spent_s:.0f} s ({_interval(goal)})"
    if goal.lower is None:
        return f"{name}: more than {goal.loss_ratio:.1%} is lost even at {done.lowest:,.0f} pps, the lowest load tried"
    if goal.upper is None:
        most = f"{done.highest:,.0f} pps, the highest load that the generator can keep"
        return f"{name}: the DUT forwards {most}; its throughput is at least that"
    if done.generator_limited(goal):
        return f"{name}: at {goal.upper:,.0f} pps the generator fell short, so the DUT was not the limit"
    return None


def _search(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    from fwlab.metrics.rate.rate_search import search  # slow to import

    measurer, flat_out = at_load(session, spec, so_far), found(so_far).flat_out
    if measurer is None or not flat_out:
        return so_far
    highest = measurer.highest(flat_out)
    if highest <= MIN_PPS:
        return so_far.troubled([f"{highest:,.0f} pps is the highest load, too little to search for a rate"])

    def report(bounds: Bounds, trials: int, spent_s: float) -> None:
        named = {NAMES[ratio]: interval for ratio, interval in bounds.items()}
        session.nodes.emit(BoundsNarrowed(spec.id, named, trials, spent_s, BUDGET_S))

    done = search(measurer.measure, lowest=MIN_PPS, highest=highest, terms=measurer.terms, report=report)
    return with_found(so_far, searches=[*found(so_far).searches, done])


def _interval(goal: GoalBounds) -> str:
    return BoundsNarrowed.interval(goal.lower, goal.upper)


#: One search for the rates of all goals.
SEARCH = Step(Phase.SEARCH, _search, despite_problems=False)


#: The loads after the first, as shares of what the generator sends flat out, or of twice what the DUT processes then.
#: RFC 2544: steps of at most 10 %.
CURVE_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
#: The curve ends with this many consecutive trials without loss.
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


def _curve(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    measurer, flat_out = at_load(session, spec, so_far), found(so_far).flat_out
    if measurer is None or not flat_out:
        return so_far
    ceiling = measurer.ceiling(flat_out)
    trials: list[TrialResult] = []
    for share in CURVE_SHARES:
        trials.append(measurer.measure(measurer.terms.trial_s, share * ceiling))
        if len(trials) >= WITHOUT_LOSS and not any(trial.lost for trial in trials[-WITHOUT_LOSS:]):
            break
    return with_found(so_far, curve=trials)


CURVE = Step(Phase.LOSS_CURVE, _curve, despite_problems=False)


METRIC = (
    Throughput("throughput", 12, "throughput (NDR)", NDR),
    Throughput("pdr", 13, "throughput with 0.5 % loss (PDR)", PDR),
    FrameLoss(),
)
