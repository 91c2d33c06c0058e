# SPDX-License-Identifier: GPL-2.0-or-later
"""FWLAB_DUT_CPUS: how many CPUs a new DUT gets, and that the virtual testbed keeps to one."""

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
  lab = FirewallLab::Project.new(Dir.pwd).machines.select { |machine| machine.lab == 'lab03-ipset' }
  puts lab.map { |machine| machine.node['cpus'] }.join(' '), lab[1].links.map(&:queues).join(' ')
rescue FirewallLab::Problem => problem
  puts problem.message
end
"""

pytestmark = needs("ruby")


@pytest.mark.parametrize(
    ("testbed", "value", "said"),
    [
        ("real", None, "1 1 1\n1 1\n"),
        ("real", "4", "1 4 1\n4 4\n"),
        ("virtual", "4", "1 1 1\n1 1\n"),
        ("real", "0", "FWLAB_DUT_CPUS=0 is not a number of CPUs from 1 to 64"),
        ("real", "many", "FWLAB_DUT_CPUS=many is not a number of CPUs"),
        ("virtual", "65", "FWLAB_DUT_CPUS=65 is not a number of CPUs"),
    ],
)
def test_only_the_real_testbeds_dut_gets_more_cpus(testbed: str, value: str | None, said: str) -> None:
    environment = {name: word for name, word in os.environ.items() if not name.startswith("FWLAB_")}
    environment |= {"FWLAB_TESTBED": testbed} | ({} if value is None else {"FWLAB_DUT_CPUS": value})
    done = subprocess.run(["ruby", "-e", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(said)
