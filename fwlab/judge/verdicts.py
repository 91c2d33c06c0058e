# SPDX-License-Identifier: GPL-2.0-or-later
"""Judging: a pure function of results and expectations, so an old result can be judged again.

Results and expectations name their metrics; `metrics` says what those names mean.
"""

from functools import partial

from fwlab.judge.load_dependence import changes
from fwlab.judge.statistics import Figure, figure
from fwlab.model.check import Check
from fwlab.model.expectation import Expectation, Range
from fwlab.model.lab import Exercise, Lab
from fwlab.model.metric import Metric, Metrics, refused_by_clock
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict

#: Saturated trials of one measurement that are further apart than this measured something else as well.
LARGEST_SPREAD = 0.05
#: Such trials still decide if the nearest bound is further from all of them than this multiple of their own distance.
CLEAR_OF_BOUND = 2


def judge_cases(lab: Lab, run: Run, metrics: Metrics) -> list[Verdict]:
    """Every expectation on every case that this run measured."""
    verdicts = []
    for expectation in lab.expectations:
        metric = metrics[expectation.metric]
        for case_id, between in _absolute(expectation, run).items():
            measured = run.case(case_id)
            if measured is not None:
                verdicts.append(_verdict(expectation, metric, measured, between, None, run))
        for case_id, between in expectation.ratio.items():
            measured, base = run.case(case_id), run.case(expectation.ratio_to or "")
            if measured is not None and base is not None:
                verdicts.append(_verdict(expectation, metric, measured, between, base, run))
    return verdicts


def judge_exercise(exercise: Exercise, measured: Measured, run: Run, metrics: Metrics) -> list[Verdict]:
    """Every check of an exercise on one ruleset's measurement."""
    verdicts = []
    changed = {} if exercise.load_dependent else changes(measured, stateful=exercise.stateful)
    for check in exercise.checks:
        metric = metrics[check.metric]
        if (reason := _load_dependent(check, metric, changed)) and not measured.problems:
            verdicts.append(_verdict_of(check, measured, check.between, None, Outcome.FAIL, reason))
            continue
        base = run.case(check.ratio_to) if check.ratio_to else None
        if check.ratio_to and base is None and measured.refused is None:
            missing = f"case {check.ratio_to} was not measured beside it"
            verdicts.append(_verdict_of(check, measured, check.between, None, Outcome.INCONCLUSIVE, missing))
        else:
            traffic_class = check.traffic_class or ""
            verdicts.append(_verdict(check, metric, measured, check.between, base, run, traffic_class))
    return verdicts


def _load_dependent(check: Check, metric: Metric, changed: dict[str, str]) -> str | None:
    """Why this check fails for a ruleset that treats a packet differently at different times; None if it does not."""
    if metric.invalidated_by == "own class" and check.traffic_class in changed:
        return f"the ruleset behaves differently at different times: {changed[check.traffic_class]}"
    if metric.invalidated_by == "any class" and changed:
        how = "; ".join(changed.values())
        return f"a figure counts only for a ruleset that treats a packet the same at all times: {how}"
    return None


def doubts(measured: Measured, metric: Metric, run: Run) -> list[str]:
    """Why this figure is not reliable; empty if it is."""
    reasons = faults(measured, metric)
    clock = refused_by_clock(metric, run.testbed.clock)
    if clock and metric.name == measured.metric:
        reasons.append(clock)
    found = figure(measured, metric, run.testbed) if metric.least_busy is not None else None
    return reasons + _beyond(found, LARGEST_SPREAD, "can be judged")


def all_doubts(measured: Measured, run: Run, metrics: Metrics) -> list[str]:
    """The doubts about each metric that it was measured for, each once; empty for a ruleset that was refused."""
    if measured.refused is not None:
        return []
    reasons = [reason for name in measured.metrics for reason in doubts(measured, metrics[name], run)]
    return list(dict.fromkeys(reasons))


def worth_again(measured: Measured, run: Run, metrics: Metrics) -> list[str]:
    """Why to measure this once more: it is in doubt, or its trials are further apart than usual on this testbed."""
    reasons = all_doubts(measured, run, metrics)
    if reasons or measured.refused is not None or run.testbed.ranges != "portable":
        return reasons
    for metric in (metrics[name] for name in measured.metrics):
        if metric.usual_spread is not None:
            reasons += _beyond(figure(measured, metric, run.testbed), metric.usual_spread, "is usual here")
    return reasons


def faults(measured: Measured, metric: Metric) -> list[str]:
    """What went wrong in the measurement, whatever the values; no verdict can rest on it."""
    reasons = [*measured.problems, *metric.doubts(measured)]
    if metric.least_busy is None:
        return reasons
    trials = metric.trials(measured)
    if not trials:
        return reasons or ["no trial was completed"]
    lowest = min(trial.busy_share for trial in trials)
    if lowest < metric.least_busy and not reasons:
        reasons.append(f"DUT not saturated: busy {lowest:.1%} of a trial")
    return reasons


def _absolute(expectation: Expectation, run: Run) -> dict[str, Range]:
    """The absolute ranges that hold on this run's testbed and kernel; elsewhere only the ratios are judged."""
    if not expectation.applies_to(run.dut.kernel):
        return {}
    if run.testbed.ranges == "portable":
        return expectation.virtual
    if run.testbed.ranges == "host_class" and run.host.host_class is not None:
        return expectation.hosts.get(run.host.host_class, {})
    return {}


def _verdict(
    rule: Expectation | Check,
    metric: Metric,
    measured: Measured,
    between: Range,
    base: Measured | None,
    run: Run,
    traffic_class: str = "",
) -> Verdict:
    verdict = partial(_verdict_of, rule, measured, between, base)
    if len(measured.lost) > 1:
        return verdict(Outcome.FAIL, f"the DUT did not survive this ruleset, twice: {measured.lost[-1]}")
    if measured.refused is not None:
        return verdict(Outcome.FAIL, f"not loaded: {measured.refused}")
    own = figure(measured, metric, run.testbed, traffic_class)
    base_figure = figure(base, metric, run.testbed) if base is not None else None
    doubted = faults if _clear(own, base_figure, base, between) else partial(doubts, run=run)
    reasons = doubted(measured, metric)
    if base is not None:
        reasons += [f"{base.id}: {doubt}" for doubt in doubted(base, metric)]
    if own is None or (base is not None and base_figure is None):
        clock = refused_by_clock(metric, run.testbed.clock)
        reasons = [*reasons, clock] if clock else reasons or [f"{metric.name} was not measured"]
    if base is not None and base_figure is not None and base_figure.median == 0:
        reasons.append(f"{base.id}: {metric.name} is zero, so there is no ratio to it")
    reasons += metric.reservations(measured)
    if isinstance(rule, Check) and base is None and metric.needs_clock and run.testbed.ranges != "portable":
        reasons.append("this range holds on the virtual testbed only")
    if isinstance(rule, Check) and base is None and metric.needs_clock and not rule.applies_to(run.dut.kernel):
        reasons.append(f"this range was measured on kernel {rule.kernel}, the DUT runs {run.dut.kernel}")
    if reasons or own is None:
        return verdict(Outcome.INCONCLUSIVE, "; ".join(dict.fromkeys(reasons)))
    value = own.median if base_figure is None else own.median / base_figure.median
    if between[0] <= value <= between[1]:
        return verdict(Outcome.PASS, rule.passed, value)
    return verdict(Outcome.FAIL, rule.failed, value)


def _clear(own: Figure | None, base_figure: Figure | None, base: Measured | None, between: Range) -> bool:
    """Whether every value that such trials could have had lies on the same side of each bound."""
    if own is None or (base is not None and base_figure is None):
        return False
    low, high = _reach(own)
    if base_figure is not None:
        least, most = _reach(base_figure)
        if least <= 0:
            return False
        low, high = low / most, high / least
    return high < between[0] or low > between[1] or (between[0] <= low and high <= between[1])


def _reach(own: Figure) -> tuple[float, float]:
    margin = CLEAR_OF_BOUND * (own.high - own.low)
    return own.low - margin, own.high + margin


def _beyond(found: Figure | None, most: float, limit: str) -> list[str]:
    """What to say of trials that are further apart than `most`; there is no figure if the DUT was never busy."""
    if found is None or found.spread <= most:
        return []
    return [f"the trials are {found.spread:.1%} apart; at most {most:.0%} {limit}"]


def _verdict_of(
    rule: Expectation | Check,
    measured: Measured,
    between: Range,
    base: Measured | None,
    outcome: Outcome,
    text: str,
    value: float | None = None,
) -> Verdict:
    return Verdict(
        subject=measured.id,
        check=rule.id,
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
