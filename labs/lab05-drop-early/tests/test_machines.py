# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab compares hooks, so none may be taken at the start."""


def test_no_program_and_no_filter_is_attached_at_the_start(dut):
    assert "xdp" not in dut.check_output("ip -details link show dev eth0")
    assert dut.check_output("tc filter show dev eth0 ingress") == ""


def test_the_program_that_drops_earliest_can_be_loaded(dut):
    assert dut.package("xdp-tools").is_installed
