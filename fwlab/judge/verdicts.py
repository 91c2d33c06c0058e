# SPDX-License-Identifier: GPL-2.0-or-later
"""Judging: a pure function of results and expectations, so an old result can be judged again.

Results and expectations name their metrics; `metrics` says what those names mean.
"""

from functools import partial

from fwlab.judge import conduct
from fwlab.judge.clocks import clock_of, too_far_apart
from fwlab.judge.statistics import Figure, figure, paired_ratio
from fwlab.model.check import Check
from fwlab.model.expectation import Expectation, Range
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric, Metrics, refused_by_clock
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict

#: Above this share of what the generator can send on a calibrated host, a rate may be the generator's.
NEAR_CEILING = 0.9
#: Such trials still decide if the nearest bound is further from all of them than this multiple of their own distance.
CLEAR_OF_BOUND = 2
#: A DUT that died this often while a ruleset was loaded died of the ruleset.
TWICE = 2
#: What is said of a ruleset that keeps itself from being measured.
BLAME = "it could not be measured with this ruleset, twice, and could in between without it: {}"


def judge_cases(lab: Lab, run: Run, metrics: Metrics) -> list[Verdict]:
    """Every expectation on every case that this run measured."""
    verdicts = []
    for expectation in lab.expectations:
        metric = metrics[expectation.metric]
        for case_id, between in _absolute(expectation, run).items():
            measured = run.case(case_id)
            if measured is not None:
                verdicts.append(verdict_on(expectation, metric, measured, between, None, run))
        for case_id, between in expectation.ratio.items():
            measured = run.case(case_id)
            base = base_of(measured, expectation.ratio_to, run)
            if measured is not None and base is not None:
                verdicts.append(verdict_on(expectation, metric, measured, between, base, run))
    return verdicts


def doubts(measured: Measured, metric: Metric, run: Run) -> list[str]:
    """Why this figure is not reliable; empty if it is."""
    reasons = faults(measured, metric, run)
    clock = refused_by_clock(metric, run.testbed.clock)
    if clock and metric.name == measured.metric:
        reasons.append(clock)
    if metric.min_busy is None:
        return reasons
    interleaved = measured.interleaved
    paired = paired_ratio(measured, metric, run.testbed, interleaved.id) if interleaved is not None else None
    return reasons + _scattered(paired or figure(measured, metric, run.testbed), run)


def all_doubts(measured: Measured, run: Run, metrics: Metrics) -> list[str]:
    """The doubts about each metric that it was measured for, each once; empty for a ruleset that was refused."""
    if measured.refused is not None:
        return []
    reasons = [reason for name in measured.metrics for reason in doubts(measured, metrics[name], run)]
    return list(dict.fromkeys(reasons))


def suspected(measured: Measured, run: Run, metrics: Metrics) -> list[str]:
    """Why this measurement is in doubt, if the ruleset may be the cause of all of it; else nothing.

    The DUT's virtual clock runs alike on every host, so if trials by it scatter, or find the DUT idle, the host is an
    unlikely cause, too.
    """
    reasons = all_doubts(measured, run, metrics) if len(measured.lost) < TWICE else []
    return reasons if all(_may_be_the_rulesets(reason, measured, run) for reason in reasons) else []


def _may_be_the_rulesets(reason: str, measured: Measured, run: Run) -> bool:
    return reason in measured.suspects or (reason not in measured.problems and clock_of(run.testbed).repeats)


def blamed(measured: Measured) -> str | None:
    """What the ruleset is to blame for, so that no figure could be measured; None if it is not."""
    if not (measured.fine_without and measured.problems and set(measured.problems) <= set(measured.suspects)):
        return None
    return BLAME.format("; ".join(dict.fromkeys(measured.problems)))


def should_remeasure(measured: Measured, run: Run, metrics: Metrics) -> list[str]:
    """Why to measure this once more: it is in doubt, or its trials are further apart than usual on this testbed."""
    reasons = all_doubts(measured, run, metrics)
    if reasons or measured.refused is not None or run.testbed.ranges != "portable":
        return reasons
    for metric in (metrics[name] for name in measured.metrics):
        if metric.usual_spread is not None:
            found = figure(measured, metric, run.testbed)
            reasons += too_far_apart(found, metric.usual_spread, "is usual here") if found else []
    return reasons


def needs_more_trials(measured: Measured, run: Run, metrics: Metrics) -> bool:
    """Whether its trials lie so far apart that only more of them can give a median."""
    found = [figure(measured, metrics[name], run.testbed) for name in measured.metrics if metrics[name].min_busy]
    return any(one is not None and clock_of(run.testbed).needs_more_trials(one) for one in found)


def faults(measured: Measured, metric: Metric, run: Run) -> list[str]:
    """What went wrong in the measurement, however close its values are; no verdict can rest on it."""
    reasons = [*measured.problems, *metric.doubts(measured), *_near_ceiling(measured, metric, run)]
    if metric.invalidated_by and not clock_of(run.testbed).repeats:
        reasons += conduct.doubts(measured)
    if metric.min_busy is None:
        return reasons
    reasons += measured.unsaturated
    trials = metric.trials(measured)
    if not trials:
        return reasons or ["no trial was completed"]
    lowest = min(trial.busy_share for trial in trials)
    if lowest < metric.min_busy and not reasons:
        reasons.append(f"DUT not saturated: busy {lowest:.1%} of a trial")
    return reasons


def _near_ceiling(measured: Measured, metric: Metric, run: Run) -> list[str]:
    """Why the generator may have been the limit, by this host's calibration; empty if it was not."""
    ceiling = run.host.ceiling_pps
    found = figure(measured, metric, run.testbed) if metric.below_ceiling and ceiling else None
    if found is None or ceiling is None or found.median < NEAR_CEILING * ceiling:
        return []
    share = f"{found.median:,.0f} pps is {found.median / ceiling:.0%} of what the generator can send on this host"
    return [f"{share} ({ceiling:,.0f} pps, `fwlab calibrate`); above {NEAR_CEILING:.0%} it may have been the limit"]


def base_of(measured: Measured | None, name: str | None, run: Run) -> Measured | None:
    """The case of this name: the one whose trials alternated with this one's, else the run's own."""
    interleaved = measured.interleaved if measured is not None else None
    if interleaved is not None and interleaved.id == name:
        return interleaved
    return run.case(name or "")


def _absolute(expectation: Expectation, run: Run) -> dict[str, Range]:
    """The absolute ranges that hold on this run's testbed and kernel; elsewhere only the ratios are judged."""
    if not expectation.applies_to(run.dut.kernel):
        return {}
    if run.testbed.ranges == "portable":
        return expectation.virtual
    if run.testbed.ranges == "host_class" and run.host.host_class is not None:
        return expectation.hosts.get(run.host.host_class, {})
    return {}


def verdict_on(
    rule: Expectation | Check,
    metric: Metric,
    measured: Measured,
    between: Range,
    base: Measured | None,
    run: Run,
    traffic_class: str = "",
) -> Verdict:
    """The verdict on a figure, or on its ratio to that of `base`, in a measurement of `rule.metric`."""
    verdict = partial(verdict_of, rule, measured, between, base)
    if len(measured.lost) >= TWICE:
        return verdict(Outcome.FAIL, f"the DUT did not survive this ruleset, twice: {measured.lost[-1]}")
    if measured.refused is not None:
        return verdict(Outcome.FAIL, f"not loaded: {measured.refused}")
    own = figure(measured, metric, run.testbed, traffic_class)
    base_figure = figure(base, metric, run.testbed) if base is not None else None
    paired = paired_ratio(measured, metric, run.testbed, base.id) if base is not None else None
    clear = _clear(paired or own, None if paired else base_figure, between, run) and not (base and base_figure is None)
    doubted = faults if clear or paired else doubts
    reasons = doubted(measured, metric, run)
    if (paired or base is None) and not clear and metric.min_busy is not None:
        reasons += _scattered(paired or own, run)
    own_reasons = set(reasons)
    if base is not None:
        reasons += [f"{base.id}: {doubt}" for doubt in doubted(base, metric, run)]
    if own is None or (base is not None and base_figure is None):
        clock = refused_by_clock(metric, run.testbed.clock)
        reasons = [*reasons, clock] if clock else reasons or measured.unsaturated or [f"{metric.name} was not measured"]
    if base is not None and base_figure is not None and base_figure.median == 0:
        reasons.append(f"{base.id}: {metric.name} is zero, so there is no ratio to it")
    reasons += metric.reservations(measured)
    if isinstance(rule, Check) and base is None and metric.needs_clock:
        if run.testbed.ranges != "portable":
            reasons.append("this range holds on the virtual testbed only")
        if not rule.applies_to(run.dut.kernel):
            reasons.append(f"this range was measured on kernel {rule.kernel}, the DUT runs {run.dut.kernel}")
    said = "; ".join(dict.fromkeys(reasons))
    blamable = own_reasons == set(reasons) and all(_may_be_the_rulesets(one, measured, run) for one in reasons)
    if reasons and blamable and measured.fine_without:
        return verdict(Outcome.FAIL, BLAME.format(said))
    if reasons or own is None:
        return verdict(Outcome.INCONCLUSIVE, said)
    value = paired.median if paired else own.median if base_figure is None else own.median / base_figure.median
    if between[0] <= value <= between[1]:
        return verdict(Outcome.PASS, rule.passed, value)
    return verdict(Outcome.FAIL, rule.failed, value)


def _clear(own: Figure | None, base_figure: Figure | None, between: Range, run: Run) -> bool:
    """Whether every value that such trials could have had lies on the same side of each bound."""
    reach, other = _reach(own, run), _reach(base_figure, run)
    if reach is None:
        return False
    low, high = reach
    if base_figure is not None:
        if other is None or other[0] <= 0:
            return False
        low, high = low / other[1], high / other[0]
    return high < between[0] or low > between[1] or (between[0] <= low and high <= between[1])


def _reach(own: Figure | None, run: Run) -> tuple[float, float] | None:
    """How far such trials could reach: all of them, or the median's interval where the clock is the host's."""
    found = clock_of(run.testbed).extent(own) if own is not None else None
    if found is None:
        return None
    margin = CLEAR_OF_BOUND * (found[1] - found[0])
    return found[0] - margin, found[1] + margin


def _scattered(found: Figure | None, run: Run) -> list[str]:
    """Why the trials scatter too much for a figure; empty if they do not, or if there is no figure."""
    return [] if found is None else clock_of(run.testbed).too_scattered(found)


def verdict_of(
    rule: Expectation | Check,
    measured: Measured,
    between: Range,
    base: Measured | None,
    outcome: Outcome,
    text: str,
    value: float | None = None,
) -> Verdict:
    """A verdict with this outcome, and the reason for it."""
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
