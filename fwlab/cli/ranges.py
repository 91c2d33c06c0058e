# SPDX-License-Identifier: GPL-2.0-or-later
"""Renew the expected ranges of a lab from a run: each is the measured median, and so much below and above.

    fwlab author ranges LAB [RUN.json]        (without a file: the lab's latest, reports/LAB/run.json)

An author writes each expectation with its texts and one line for every case, such as `raw-drop: [0, .inf]`; the numbers
come from here, so that none is typed by hand. What the run did not measure stays as it is. Commit the run itself with
`fwlab author publish`, so that every range has its raw results.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from fwlab.host.atomic_write import write_atomically
from fwlab.host.project import Project
from fwlab.judge.statistics import Figure, figure
from fwlab.judge.verdicts import doubts
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.expectation import Expectation
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric
from fwlab.model.results import Run

DIGITS = 4

_SECTION = re.compile(r"    (\w+):")
_RANGE = re.compile(r"      ([\w.-]+): \[[^\]]*\]\s*")


def renew(_project: Project, lab: Lab, run: Run) -> list[Path]:
    """Write the ranges into the lab's lab.yml. Raises BadInput as `renewed` does."""
    page = lab.folder / "lab.yml"
    return [write_atomically(page, renewed(page.read_text(encoding="utf-8"), lab, run))]


def renewed(text: str, lab: Lab, run: Run) -> str:
    """`text`, which is the lab's lab.yml, with the ranges of what the run measured.

    Raises BadInput for a case in doubt, and for a range that is not on a line of its own.
    """
    lines, written, section = text.splitlines(keepends=True), 0, ""
    begin = next((n for n, line in enumerate(lines, 1) if line.startswith("expectations:")), len(lines))
    expectations = iter(lab.expectations)
    current: Expectation | None = None
    for place in range(begin, len(lines)):
        line = lines[place].rstrip("\n")
        if line.startswith("  - "):
            current, section = next(expectations, None), ""
        elif heading := _SECTION.match(line):
            section = heading[1]
        elif current is not None and section in ("virtual", "ratio") and (found := _RANGE.fullmatch(line)):
            between = _between(current, found[1], run, ratio=section == "ratio")
            if between is not None:
                lines[place] = f"      {found[1]}: [{between[0]:.10g}, {between[1]:.10g}]\n"
            written += 1
    wanted = sum(len(expectation.virtual) + len(expectation.ratio) for expectation in lab.expectations)
    if written != wanted:
        raise BadInput(
            f"{lab.id}: {wanted} ranges, {written} of them on a line of their own",
            f"edit labs/{lab.id}/lab.yml: six spaces, the case, a colon, [lowest, highest]",
        )
    return "".join(lines)


def _between(expectation: Expectation, case: str, run: Run, *, ratio: bool) -> tuple[float, float] | None:
    """The range of one case; None where the run did not measure it, or not what it is a ratio to."""
    metric = METRICS[expectation.metric]
    found = _measured(case, metric, run)
    if found is None or not ratio:
        return None if found is None else _around(metric, found, expectation.apart.get(case, 0.0))
    base = _measured(expectation.ratio_to or "", metric, run)
    if base is None or not base.median:
        return None
    share = max(metric.tolerance.ratio, found.spread, base.spread, expectation.apart.get(case, 0.0))
    return _wide(found.median / base.median, share)


def _measured(case: str, metric: Metric, run: Run) -> Figure | None:
    measured = run.case(case)
    if measured is None:
        return None
    if doubt := measured.refused or "; ".join(doubts(measured, metric, run)):
        raise BadInput(f"{case} is in doubt: {doubt}", f"fwlab run {run.lab}")
    return figure(measured, metric, run.testbed)


def _around(metric: Metric, found: Figure, apart: float) -> tuple[float, float]:
    value = found.median
    if metric.tolerance.absolute is not None:
        reach = max(metric.tolerance.absolute, apart)
        return round(max(0.0, value - reach), DIGITS), round(min(1.0, value + reach), DIGITS)
    return _wide(value, max(metric.tolerance.share, found.spread, apart))


def _wide(value: float, share: float) -> tuple[float, float]:
    """Rounded outwards to four digits."""
    return _rounded(value * (1 - share), math.floor), _rounded(value * (1 + share), math.ceil)


def _rounded(value: float, direction: type(math.floor)) -> float:
    if not value:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - DIGITS)
    return float(f"{direction(round(value / unit, 6)) * unit:.{DIGITS}g}")
