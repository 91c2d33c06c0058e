# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT has of what a lab needs, asked in one command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fwlab.grading.grader import present_on

TOOLS = {
    "dpkg-query": '[ "$3" = nftables ] && echo installed || { [ "$3" = ipset ] && echo config-files; }',
    "modinfo": '[ "$1" = xt_set ]',
    "sysctl": 'case $2 in net.a) echo 1;; net.b) printf "4096\\t16384\\t4194304\\n";; *) exit 255;; esac',
}


class Dut:
    """Runs a command on this host, with tools of its own; counts how often."""

    def __init__(self, tools: Path) -> None:
        self.environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
        self.asked = 0

    def run(self, command: str) -> Any:
        self.asked += 1
        return subprocess.run(
            ["/bin/sh", "-c", command], env=self.environment, capture_output=True, text=True, check=True
        )


@pytest.fixture
def dut(tmp_path: Path) -> Dut:
    for name, body in TOOLS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return Dut(tmp_path)


def test_what_is_there_is_told_from_what_is_not_in_one_command(dut: Dut) -> None:
    found = present_on(dut, ["nftables", "ipset", "iptables"], ["xt_set", "xt_CT"], ["net.a", "net.b", "net.c"])
    assert found.packages == {"nftables"}  # the settings of a removed package may still be there
    assert found.modules == {"xt_set"}
    assert found.sysctls == {"net.a": "1", "net.b": "4096 16384 4194304"}
    assert dut.asked == 1


def test_a_lab_may_need_nothing(dut: Dut) -> None:
    found = present_on(dut, [], [], [])
    assert (found.packages, found.modules, found.sysctls) == (frozenset(), frozenset(), {})
