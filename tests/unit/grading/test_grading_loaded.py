# SPDX-License-Identifier: GPL-2.0-or-later
"""The grader notices when the kernel does not hold the contents of a ruleset file."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fwlab.grading.grader import Inconclusive, absent_from, missing
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import ruleset_file
from fwlab.rulesets.registry import KINDS
from tests.contract.kinds import Samples, all_samples


class FakeHost:
    """A DUT whose tools give predefined answers; any other call fails."""

    def __init__(self, answers: dict[str, str], rc: int = 0) -> None:
        self.answers, self.rc = answers, rc

    def run(self, command: str, *arguments: str) -> SimpleNamespace:
        answer = self.answers[command % arguments if arguments else command]
        return SimpleNamespace(rc=self.rc, stdout=answer, stderr="no such tool\n" if self.rc else "")


class LostHost:
    def run(self, *_: str) -> None:
        raise RuntimeError("CommandResult(exit_status=255)")


@pytest.mark.parametrize("samples", [one for one in all_samples() if one.name in KINDS], ids=lambda one: one.name)
def test_an_unreachable_dut_is_inconclusive(samples: Samples) -> None:
    with pytest.raises(Inconclusive, match="lost the connection to the DUT"):
        missing(LostHost(), RulesetFile("a", samples.name, samples.held))


def test_a_name_that_turns_the_text_round_is_shown_escaped() -> None:
    file = ruleset_file("a.ipset", "create \u202eevil hash:ip\n")
    said = absent_from(FakeHost({"ipset list -n": ""}), [file])
    assert said == "a.ipset: loaded, but the DUT does not hold: sets \\u202eevil"


def test_a_tool_that_cannot_list_is_inconclusive() -> None:
    with pytest.raises(Inconclusive, match="the DUT cannot list what it holds: ipset: no such tool"):
        missing(FakeHost({"ipset list -n": ""}, rc=1), ruleset_file("a.ipset", "create one hash:ip\n"))
