# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT has of what a lab needs, in Testinfra's words."""

from __future__ import annotations

from pathlib import Path

import pytest
import testinfra

from fwlab.grading.grader import present_on

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
