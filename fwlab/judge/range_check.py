# SPDX-License-Identifier: GPL-2.0-or-later
"""The usual check: a figure lies in a range, or its ratio to that of a case of the same session does."""

from fwlab.judge.verdicts import base_of, verdict_of, verdict_on
from fwlab.model.check import DEFAULT_KIND, Check
from fwlab.model.metric import Metrics
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict


class RangeCheck:
    """Everything that it needs to know is in the fields that every check has."""

    name = DEFAULT_KIND
    check = Check

    def judge(self, check: Check, measured: Measured, run: Run, metrics: Metrics) -> Verdict:
        """Inconclusive if the case was not measured, or if the figure is in doubt."""
        base = base_of(measured, check.ratio_to, run)
        if check.ratio_to and base is None and measured.refused is None:
            missing = f"case {check.ratio_to} was not measured in the same run"
            return verdict_of(check, measured, check.between, None, Outcome.INCONCLUSIVE, missing)
        metric = metrics[check.metric]
        return verdict_on(check, metric, measured, check.between, base, run, check.traffic_class or "")


CHECK = RangeCheck()
