# SPDX-License-Identifier: GPL-2.0-or-later
"""What must be true of this lab's machines before anything is measured (guides/testinfra.md)."""


def test_the_dut_starts_without_rules(dut):
    assert dut.check_output("iptables-legacy-save") == ""
    assert dut.check_output("nft list ruleset") == ""
