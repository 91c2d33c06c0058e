# SPDX-License-Identifier: GPL-2.0-or-later
"""Judging: a pure function of results and expectations, so an old result can be judged again."""

from __future__ import annotations

from functools import partial

from fwlab.judge.load_dependence import changes
from fwlab.judge.statistics import MOST_IDLE, MOST_IDLE_LOOP, Figure, figure
from fwlab.model.expectation import Check, Expectation, Range
from fwlab.model.lab import Exercise, Lab
from fwlab.model.metric import Metric
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict

#: Trials of one measurement further apart than this say that something else was measured too.
LARGEST_SPREAD = 0.05
#: On the virtual testbed they repeat to a few parts in a thousand; so far apart they can be judged, and yet something
#: was there that need not be there a second time.
WORTH_AGAIN = 0.02
#: Metrics of overload: they mean something only while the DUT is never idle.
SATURATED = (Metric.CAPACITY, Metric.CONNECTIONS)
#: Still they decide where the nearest bound lies further from all of them than so many times their own distance.
CLEAR_OF_BOUND = 2


def judge_cases(lab: Lab, run: Run) -> list[Verdict]:
    """Every expectation on every case that this run measured."""
    verdicts = []
    for expectation in lab.expectations:
        for case_id, between in _absolute(expectation, run).items():
            measured = run.case(case_id)
            if measured is not None:
                verdicts.append(_verdict(expectation, expectation.id, measured, between, None, run))
        for case_id, between in expectation.ratio.items():
            measured, base = run.case(case_id), run.case(expectation.ratio_to or "")
            if measured is not None and base is not None:
                verdicts.append(_verdict(expectation, expectation.id, measured, between, base, run))
    return verdicts


def judge_exercise(exercise: Exercise, measured: Measured, run: Run) -> list[Verdict]:
    """Every check of an exercise on one ruleset's measurement."""
    verdicts = []
    changed = {} if exercise.load_dependent else changes(measured)
    for check in exercise.checks:
        if (reason := _load_dependent(check, changed)) and not measured.problems:
            verdicts.append(_made(check, check.id, measured, Outcome.FAIL, None, check.between, None, reason))
            continue
        base = run.case(check.ratio_to) if check.ratio_to else None
        if check.ratio_to and base is None and measured.refused is None:
            verdicts.append(_unmeasured(check, measured, f"case {check.ratio_to} was not measured beside it"))
        else:
            traffic_class = check.traffic_class or ""
            verdicts.append(_verdict(check, check.id, measured, check.between, base, run, traffic_class))
    return verdicts


def _load_dependent(check: Check, changed: dict[str, str]) -> str | None:
    """Why this check fails for a ruleset that does not treat a packet the same at all times; None where it does not."""
    if check.metric is Metric.DELIVERED and check.traffic_class in changed:
        return f"the ruleset behaves differently at different times: {changed[check.traffic_class]}"
    if check.metric in (Metric.CAPACITY, Metric.SURVIVAL) and changed:
        how = "; ".join(changed.values())
        return f"a figure counts only for a ruleset that treats a packet the same at all times: {how}"
    return None


def doubts(measured: Measured, metric: Metric, run: Run) -> list[str]:
    """Why this figure is not to be relied on; empty when it is."""
    found = faults(measured, metric)
    apart = figure(measured, metric, run.testbed) if metric in SATURATED else None
    return found + _beyond(apart, LARGEST_SPREAD, "can be judged")


def all_doubts(measured: Measured, run: Run) -> list[str]:
    """The doubts in each metric that it was measured for, each once; empty for a ruleset that was refused."""
    if measured.refused is not None:
        return []
    metrics = [measured.metric, *measured.also]
    return list(dict.fromkeys(doubt for metric in metrics for doubt in doubts(measured, metric, run)))


def worth_again(measured: Measured, run: Run) -> list[str]:
    """Why this is better measured once more: it is in doubt, or its trials are further apart than is usual here."""
    reasons = all_doubts(measured, run)
    if reasons or measured.refused is not None or run.testbed.ranges != "portable":
        return reasons
    if Metric.CAPACITY not in (measured.metric, *measured.also):
        return []
    return _beyond(figure(measured, Metric.CAPACITY, run.testbed), WORTH_AGAIN, "is usual here")


def faults(measured: Measured, metric: Metric) -> list[str]:
    """What went wrong while it was measured, whatever the values; no verdict can rest on that."""
    found = list(measured.problems)
    if metric not in SATURATED:
        return found
    trials = measured.tcp if metric is Metric.CONNECTIONS else measured.trials
    if not trials:
        return found or ["no trial was completed"]
    most = MOST_IDLE_LOOP if metric is Metric.CONNECTIONS else MOST_IDLE
    idle = [t for t in trials if t.busy_share < 1 - most]
    if idle and not found:
        share = min(t.busy_share for t in idle)
        found.append(f"the DUT was not saturated: busy {share:.1%} of a trial")
    return found


def _absolute(expectation: Expectation, run: Run) -> dict[str, Range]:
    """The absolute ranges that hold on this run's testbed and kernel; elsewhere the ratios judge alone."""
    if not expectation.knows(run.dut.kernel):
        return {}
    if run.testbed.ranges == "portable":
        return expectation.virtual
    if run.testbed.ranges == "host_class" and run.host.host_class is not None:
        return expectation.hosts.get(run.host.host_class, {})
    return {}


def _verdict(
    rule: Expectation | Check,
    rule_id: str,
    measured: Measured,
    between: Range,
    base: Measured | None,
    run: Run,
    traffic_class: str = "",
) -> Verdict:
    metric = rule.metric
    if len(measured.lost) > 1:
        text = f"the DUT did not survive this ruleset, twice: {measured.lost[-1]}"
        return _made(rule, rule_id, measured, Outcome.FAIL, None, between, base, text)
    if measured.refused is not None:
        return _made(rule, rule_id, measured, Outcome.FAIL, None, between, base, f"not loaded: {measured.refused}")
    found = figure(measured, metric, run.testbed, traffic_class)
    below = figure(base, metric, run.testbed) if base is not None else None
    doubted = faults if _clear(found, below, base, between) else partial(doubts, run=run)
    reasons = doubted(measured, metric)
    if base is not None:
        reasons += [f"{base.id}: {doubt}" for doubt in doubted(base, metric)]
    if found is None or (base is not None and below is None):
        reasons = reasons or [f"{metric.value} was not measured"]
    if base is not None and below is not None and below.median == 0:
        reasons.append(f"{base.id}: {metric.value} is zero, so there is no ratio to it")
    if metric is Metric.CONNECTIONS and _opened_by_trex(measured):
        reasons.append("TRex opened these connections, of fewer packets each; the range was measured with wrk's")
    if isinstance(rule, Check) and base is None and metric.needs_clock and run.testbed.ranges != "portable":
        reasons.append("this range holds on the virtual testbed only")
    if isinstance(rule, Check) and base is None and metric.needs_clock and not rule.knows(run.dut.kernel):
        reasons.append(f"this range was measured on kernel {rule.kernel}, the DUT runs {run.dut.kernel}")
    if reasons:
        return _made(
            rule, rule_id, measured, Outcome.INCONCLUSIVE, None, between, base, "; ".join(dict.fromkeys(reasons))
        )
    value = _value(found, below)
    inside = between[0] <= value <= between[1]
    text = rule.passed if inside else rule.failed
    return _made(rule, rule_id, measured, Outcome.PASS if inside else Outcome.FAIL, value, between, base, text)


def _opened_by_trex(measured: Measured) -> bool:
    return any(clients.program == "trex" for clients in measured.clients)


def _value(found: Figure, below: Figure | None) -> float:
    return found.median if below is None else found.median / below.median


def _clear(found: Figure | None, below: Figure | None, base: Measured | None, between: Range) -> bool:
    """Whether every value that such trials might have had lies on one side of each bound."""
    if found is None or (base is not None and below is None):
        return False
    low, high = _reach(found)
    if below is not None:
        least, most = _reach(below)
        if least <= 0:
            return False
        low, high = low / most, high / least
    return high < between[0] or low > between[1] or (between[0] <= low and high <= between[1])


def _reach(found: Figure) -> tuple[float, float]:
    margin = CLEAR_OF_BOUND * (found.high - found.low)
    return found.low - margin, found.high + margin


def _beyond(apart: Figure | None, most: float, says: str) -> list[str]:
    """What is said of trials that are further apart than `most`; a figure is None if the DUT was never busy at all."""
    if apart is None or apart.spread <= most:
        return []
    return [f"the trials are {apart.spread:.1%} apart; at most {most:.0%} {says}"]


def _made(
    rule: Expectation | Check,
    rule_id: str,
    measured: Measured,
    outcome: Outcome,
    value: float | None,
    between: Range,
    base: Measured | None,
    text: str,
) -> Verdict:
    return Verdict(
        subject=measured.id,
        check=rule_id,
        metric=rule.metric,
        outcome=outcome,
        value=value,
        low=between[0],
        high=between[1],
        relative_to=base.id if base is not None else None,
        text=text.strip(),
        why=rule.why.strip(),
        source=rule.source,
    )


def _unmeasured(check: Check, measured: Measured, reason: str) -> Verdict:
    return _made(check, check.id, measured, Outcome.INCONCLUSIVE, None, check.between, None, reason)
