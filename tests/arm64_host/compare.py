# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a run agrees with the published one: the same kernel, and each capacity within a small share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fwlab.judge.statistics import figure
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Run
from tests.nested_host.record import Step

METRIC = METRICS["capacity"]
#: Two medians may differ by this share of the published one.
MOST_APART = 0.001


def agreement(run: Run, published: Run, cases: Sequence[str]) -> Iterator[Step]:
    """One step for the kernel and one for each case, in whose `says` both figures stand."""
    kernels = run.dut.kernel, published.dut.kernel
    yield Step("the same kernel", "", 0, kernels[0] == kernels[1], " and ".join(kernels))
    for case in cases:
        yield _case(run, published, case)


def _case(run: Run, published: Run, case: str) -> Step:
    name = f"{case} agrees"
    medians = []
    for one, words in ((run, "was not measured"), (published, "is not published")):
        measured = one.case(case)
        found = None if measured is None or measured.problems else figure(measured, METRIC, one.testbed)
        if found is None:
            return Step(name, "", 0, False, f"{case} {words}")
        medians.append(found.median)
    apart = medians[0] / medians[1] - 1
    says = f"{medians[0]:.0f} pps, published {medians[1]:.0f} pps: {apart:+.3%}"
    return Step(name, "", 0, abs(apart) <= MOST_APART, says)
