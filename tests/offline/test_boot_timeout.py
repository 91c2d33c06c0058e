# SPDX-License-Identifier: GPL-2.0-or-later
"""FWLAB_BOOT_TIMEOUT: how long `vagrant up` waits for a machine to let it in."""

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
  puts FirewallLab::Project.new(Dir.pwd).boot_timeout
rescue FirewallLab::Problem => problem
  puts problem.message
end
"""

pytestmark = needs("ruby")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "300\n"),
        ("1800", "1800\n"),
        ("5m", "FWLAB_BOOT_TIMEOUT=5m is not a number of seconds"),
        ("0", "FWLAB_BOOT_TIMEOUT=0 is not a number of seconds"),
    ],
)
def test_a_slow_host_may_wait_longer_for_a_boot(value: str | None, said: str) -> None:
    environment = {name: word for name, word in os.environ.items() if name != "FWLAB_BOOT_TIMEOUT"}
    if value is not None:
        environment["FWLAB_BOOT_TIMEOUT"] = value
    done = subprocess.run(["ruby", "-e", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(said)
