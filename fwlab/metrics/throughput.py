# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput (RFC 1242, RFC 2544): the highest rate without loss (NDR), and the highest with 0.5 % of loss (PDR).

Both come from one search.
"""

from collections.abc import Sequence

from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession
from fwlab.metrics.offered_load import FLAT_OUT, LIGHT_LOAD, at_load, found, with_found
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.rate_goals import BUDGET_S, NDR, PDR, Bounds
from fwlab.metrics.step import Phase, Step
from fwlab.model.benchmarks import GoalBounds, RateSearch
from fwlab.model.events import BoundsNarrowed
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts

#: The lowest load of the search (pps): of so many packets, one is the loss that PDR allows.
LOWEST = 200.0
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


METRIC = (
    Throughput("throughput", 12, "throughput (NDR)", NDR),
    Throughput("pdr", 13, "throughput with 0.5 % loss (PDR)", PDR),
)


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
    if highest <= LOWEST:
        return so_far.troubled([f"{highest:,.0f} pps is the highest load, too little to search for a rate"])

    def tell(bounds: Bounds, trials: int, spent_s: float) -> None:
        named = {NAMES[ratio]: interval for ratio, interval in bounds.items()}
        session.nodes.tell(BoundsNarrowed(spec.id, named, trials, spent_s, BUDGET_S))

    done = search(measurer, lowest=LOWEST, highest=highest, terms=measurer.terms, tell=tell)
    return with_found(so_far, searches=[*found(so_far).searches, done])


def _interval(goal: GoalBounds) -> str:
    return BoundsNarrowed.interval(goal.lower, goal.upper)


#: One search for the rates of all goals.
SEARCH = Step(Phase.SEARCH, _search, despite_problems=False)
