# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of the provisioning scripts and package lists."""

import re
import subprocess
from pathlib import Path

import pytest

from tests import ROOT

PROVISION = ROOT / "provision"
SCRIPTS = sorted(PROVISION.glob("*/*.sh"))


def test_scripts_end_at_an_error_and_can_be_run_twice() -> None:
    assert len(SCRIPTS) > 20
    for path in SCRIPTS:
        text = path.read_text()
        assert "\nset -eu\n" in text, path
        assert not re.search(r"(?<![<>])>>(?!>)", text), f"{path}: whole-file writes only: >> is not idempotent"


def test_scripts_are_numbered_in_their_order() -> None:
    for role in ("common", "dut-linux", "generator", "sink", "dut-freebsd", "nested-host"):
        assert all(re.match(r"[1-9][05]-[a-z-]+\.sh$", path.name) for path in (PROVISION / role).glob("*.sh"))


@pytest.mark.parametrize(
    "path", sorted(PROVISION.glob("*/packages*.txt")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_package_list_names_each_package_once(path: Path) -> None:
    listed = [line.strip() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    assert listed
    assert len(listed) == len(set(listed))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name) for name in listed)


def test_freebsd_gets_nothing_that_opens_bpf() -> None:
    """dhclient and pflogd hold bpf devices open; every packet would be offered to them."""
    text = "".join(path.read_text() for path in PROVISION.glob("dut-freebsd/*.sh"))
    assert " pf pflog sshd_rsa" in text
    assert "ifconfig_DEFAULT=\n" in text
    assert not re.search(r"_enable=YES[^\n]*(dhclient|pflogd|devd)|DHCP(?! client)", text)


def test_unknown_role_is_refused() -> None:
    done = subprocess.run([PROVISION / "run", "no-such-role"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no-such-role" in done.stderr
