# SPDX-License-Identifier: GPL-2.0-or-later
"""Format figures for people: units, digits, ranges. JSON documents keep the bare numbers."""

import math
from collections.abc import Iterable

from fwlab.judge.clocks import clock_of
from fwlab.judge.statistics import Figure
from fwlab.metrics.registry import METRICS
from fwlab.model.metric import Metric
from fwlab.model.results import DutFacts, TestbedFacts
from fwlab.model.verdict import TEST, Verdict

NOTHING = "–"
#: The interval of a share is shown if it is wider than this part of the share.
WORTH_SAYING = 0.01


def digits(value: float, significant: int = 4) -> str:
    """`value` with this many significant digits and no exponent; the integer part is never shortened."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else NOTHING
    if value == 0:
        return "0"
    decimals = significant - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(0, decimals)}f}"


def number(value: float, metric: Metric) -> str:
    """The number alone, in the unit that the metric is shown in: 280000 pps is "280.0"."""
    display = metric.display
    if display.whole and math.isfinite(value):
        return f"{value * display.factor:.0f}"
    shown = digits(value * display.factor, display.significant)
    return trimmed(shown) if display.trimmed else shown


def trimmed(text: str) -> str:
    """Without trailing zeros of a fraction, which would make a bound look more exact than it is."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, metric: Metric) -> str:
    """Number and unit: "280.0 kpps"."""
    return f"{number(value, metric)} {metric.display.unit}".strip()


def kernel(dut: DutFacts) -> str:
    """The DUT's kernel, and whether it was built by hand: "FreeBSD 15.1-RELEASE (built by hand: MYKERNEL)"."""
    ident = dut.kernel_configuration
    return f"{dut.kernel} (built by hand: {ident})" if ident else dut.kernel


def ratio(value: float | None) -> str:
    """A ratio with three significant digits."""
    return NOTHING if value is None else digits(value, 3)


def percent(share: float | None, signed: bool = False) -> str:
    """0.0123 is "1.2 %"; a share of exactly nothing is "0 %"."""
    if share is None:
        return NOTHING
    points = share * 100
    decimals = 0 if abs(points) >= 100 or points == 0 else 2 if abs(points) < 1 else 1
    return f"{points:{'+' if signed and points else ''}.{decimals}f} %"


def expected_range(verdict: Verdict) -> str:
    """The range of a verdict in words: "at least 240.0 kpps", "0.89 to 0.93 of raw-drop"."""
    relative = verdict.relative_to is not None

    def shown(value: float) -> str:
        if relative:
            return trimmed(digits(value))
        metric = METRICS[verdict.metric]
        return f"{trimmed(number(value, metric))} {metric.display.unit}".strip()

    if math.isinf(verdict.high) and math.isinf(verdict.low):
        words = "anything"
    elif math.isinf(verdict.high):
        words = f"at least {shown(verdict.low)}"
    elif math.isinf(verdict.low):
        words = f"at most {shown(verdict.high)}"
    elif verdict.low == verdict.high:
        words = shown(verdict.low)
    else:
        words = f"{shown(verdict.low)} to {shown(verdict.high)}"
    return f"{words} of {verdict.relative_to}" if relative else words


def measured_value(verdict: Verdict) -> str:
    """The value of a verdict in words; a dash if there is none."""
    if verdict.value is None:
        return NOTHING
    if verdict.relative_to is not None:
        return f"{digits(verdict.value)} of {verdict.relative_to}"
    return quantity(verdict.value, METRICS[verdict.metric])


def check_label(verdict: Verdict) -> str:
    """What a verdict is about: a test, or the metric, and the traffic class if its check names one."""
    if verdict.metric == TEST:
        return verdict.check
    named = verdict.check.partition("-")[0] == verdict.metric
    return check_words(verdict.check if named else verdict.metric)


def check_words(check: str) -> str:
    """A check's name as people read it: the metric, and the traffic class if it names one."""
    metric, _, traffic_class = check.partition("-")
    if metric not in METRICS:
        return check
    label = METRICS[metric].display.label
    return f"{label}, {traffic_class}" if traffic_class else label


def either(names: Iterable[str]) -> str:
    """One of these: "a or b"."""
    return " or ".join(dict.fromkeys(names))


def scatter(found: Figure | None, as_share: float | None, metric: Metric) -> str:
    """How far trials lie apart, as a share of the median; and of a share of few packets, where that of many lies."""
    if found is None:
        return ""
    words = percent(as_share) if found.several else ""
    if found.chance is None or not WORTH_SAYING * found.median < found.chance[1] - found.chance[0]:
        return words
    if not 0 < found.median < 1:
        return words
    factor = metric.display.factor
    low, high = (digits(bound * factor, 3) for bound in found.chance)
    return f"{words} ({low} to {high} {metric.display.unit})".strip()


def describe_testbed(testbed: TestbedFacts) -> str:
    """The testbed, its clock and its link in one line."""
    words = f"{testbed.name}, {testbed.accelerator}, {clock_of(testbed).title}, {testbed.engine} over {testbed.link}"
    return f"{words}; the testbed was asked for" if testbed.forced else words


def caution(testbed: TestbedFacts) -> str | None:
    """What every reader must know before these figures; None if nothing is unusual."""
    if testbed.ranges == "none":
        return (
            "These figures only show that the machinery works: they say nothing about a firewall and are "
            "never judged absolutely."
        )
    return None
