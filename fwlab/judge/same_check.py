# SPDX-License-Identifier: GPL-2.0-or-later
"""The check that nothing behaves otherwise: a range of differences, whose failure says the first of them."""

from fwlab.judge.verdicts import verdict_on
from fwlab.model.check import Check
from fwlab.model.metric import Metrics
from fwlab.model.results import Differences, Measured, Run
from fwlab.model.verdict import Outcome, Verdict


class SameCheck:
    """Like a range; but a range could only say how many differences there are."""

    name = "same"
    check = Check

    def judge(self, check: Check, measured: Measured, run: Run, metrics: Metrics) -> Verdict:
        """Inconclusive if packets could not be played."""
        verdict = verdict_on(check, metrics[check.metric], measured, check.between, None, run)
        found = measured.part(Differences)
        if verdict.outcome is not Outcome.FAIL or found is None or not found.words:
            return verdict
        return verdict.model_copy(update={"text": f"{verdict.text} {found.words[0]}"})


CHECK = SameCheck()
