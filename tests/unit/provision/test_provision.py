# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of the provisioning scripts: form, shellcheck and package lists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import ROOT
from tests.fakes.programs import program

PROVISION = ROOT / "provision"
ROLES = ["dut-linux", "generator", "sink"]
FREEBSD = PROVISION / "dut-freebsd"
SCRIPTS = sorted(PROVISION.glob("*/*.sh"))
SHELL = SCRIPTS + [
    PROVISION / name for name in ("run", "idempotence_check", "cleanup", "dut-freebsd/cleanup", "host/install")
]
SHELL += [ROOT / "packer" / name for name in ("build", "seed", "base/build", "base/customize", "base/mirrors")]


def names(path: Path) -> list[str]:
    """Package names of a list, without comments."""
    return [line.strip() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SCRIPTS, ids=relative)
def test_script_is_short_and_strict(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 40
    assert lines[:2] == ["#!/bin/sh", "# SPDX-License-Identifier: GPL-2.0-or-later"]
    assert "set -eu" in lines


@pytest.mark.parametrize("path", SCRIPTS, ids=relative)
def test_script_does_not_append_to_files(path: Path) -> None:
    assert not re.search(r"(?<![<>])>>(?!>)", path.read_text()), "whole-file writes only: >> is not idempotent"


@pytest.mark.parametrize("role", [*ROLES, "dut-freebsd", "nested-host"])
def test_scripts_are_numbered_in_their_order(role: str) -> None:
    for folder in ("common", role):
        assert all(re.match(r"[1-9][05]-[a-z-]+\.sh$", path.name) for path in (PROVISION / folder).glob("*.sh"))


def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run([program("shellcheck"), *map(str, SHELL)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "path", sorted(PROVISION.glob("*/packages*.txt")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_package_list_names_each_package_once(path: Path) -> None:
    listed = names(path)
    assert listed
    assert len(listed) == len(set(listed))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name) for name in listed)


def test_freebsd_gets_nothing_that_opens_bpf() -> None:
    """dhclient and pflogd hold bpf devices open; every packet would be offered to them."""
    text = "".join(path.read_text() for path in FREEBSD.glob("*.sh"))
    assert " pf pflog sshd_rsa" in text
    assert "ifconfig_DEFAULT=\n" in text
    assert not re.search(r"_enable=YES[^\n]*(dhclient|pflogd|devd)|DHCP(?! client)", text)


def test_unknown_role_is_refused() -> None:
    done = subprocess.run([PROVISION / "run", "no-such-role"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no-such-role" in done.stderr
