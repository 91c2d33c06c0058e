# SPDX-License-Identifier: GPL-2.0-or-later
"""Variables for new machines: how long `vagrant up` waits for them, and how many CPUs the DUT gets."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.offline.programs import needs

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
require './provision/vagrant/seed'
begin
  project = FirewallLab::Project.new(Dir.pwd)
  %s
rescue FirewallLab::Problem => problem
  puts problem.message
end
"""
CPUS = """lab = project.machines.select { |machine| machine.lab == 'lab03-ipset' }
  puts lab.map { |machine| machine.node['cpus'] }.join(' '), lab[1].links.map(&:queues).join(' ')"""

pytestmark = needs("ruby")


def said(script: str, **chosen: str | None) -> str:
    """What the script prints with these FWLAB_ variables, and no others of them. None leaves one unset."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FWLAB_")}
    environment |= {f"FWLAB_{name}": value for name, value in chosen.items() if value is not None}
    command = ["ruby", "-e", SCRIPT % script]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "300\n"),
        ("1800", "1800\n"),
        ("5m", "FWLAB_BOOT_TIMEOUT=5m is not a number of seconds"),
        ("0", "FWLAB_BOOT_TIMEOUT=0 is not a number of seconds"),
    ],
)
def test_a_slow_host_may_wait_longer_for_a_boot(value: str | None, expected: str) -> None:
    assert said("puts project.boot_timeout", BOOT_TIMEOUT=value).startswith(expected)


@pytest.mark.parametrize(
    ("testbed", "value", "expected"),
    [
        ("real", None, "1 1 1\n1 1\n"),
        ("real", "4", "1 4 1\n4 4\n"),
        ("virtual", "4", "1 1 1\n1 1\n"),
        ("real", "0", "FWLAB_DUT_CPUS=0 is not a number of CPUs from 1 to 64"),
        ("real", "many", "FWLAB_DUT_CPUS=many is not a number of CPUs"),
        ("virtual", "65", "FWLAB_DUT_CPUS=65 is not a number of CPUs"),
    ],
)
def test_only_the_real_testbeds_dut_gets_more_cpus(testbed: str, value: str | None, expected: str) -> None:
    assert said(CPUS, TESTBED=testbed, DUT_CPUS=value).startswith(expected)


@pytest.mark.parametrize(("value", "waits"), [(None, "5\n"), ("3600", "60\n"), ("60", "5\n")])
def test_a_slow_machine_has_longer_to_answer(value: str | None, waits: str) -> None:
    assert said("puts project.seconds(5)", BOOT_TIMEOUT=value) == waits


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "\n"),
        ("", "\n"),
        ("/bin/sh", "/bin/sh\n"),
        ("/etc/passwd", "FWLAB_DUT_QEMU=/etc/passwd: not the absolute path of a program\n  next: unset"),
        ("/bin", "FWLAB_DUT_QEMU=/bin: not the absolute path of a program"),
        ("sh", "FWLAB_DUT_QEMU=sh: not the absolute path of a program"),
    ],
)
def test_another_qemu_for_the_dut(value: str | None, expected: str) -> None:
    assert said("puts project.dut_qemu", DUT_QEMU=value).startswith(expected)
