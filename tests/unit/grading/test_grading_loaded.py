# SPDX-License-Identifier: GPL-2.0-or-later
"""What the grader asks the DUT: whether its kernel holds a ruleset's files, and whether it has what a lab needs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import testinfra

from fwlab.grading.grader import Inconclusive, absent_from, missing, present_on
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


TOOLS = {
    "dpkg-query": """case $4 in nftables) echo "install ok installed";;
        ipset) echo "deinstall ok config-files";;
        *) exit 1;; esac""",
    "modinfo": '[ "$1" = xt_set ]',
    "sysctl": 'case $2 in net.a) echo 1;; net.b) printf "4096\\t16384\\t4194304\\n";; *) exit 255;; esac',
}


def test_what_is_there_is_told_from_what_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in TOOLS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    dut = testinfra.get_host("local://")
    found = present_on(dut, ["nftables", "ipset", "iptables"], ["xt_set", "xt_CT"], ["net.a", "net.b", "net.c"])
    assert found.packages == {"nftables"}  # the settings of a removed package may still be there
    assert found.modules == {"xt_set"}
    assert found.sysctls == {"net.a": "1", "net.b": "4096 16384 4194304"}
