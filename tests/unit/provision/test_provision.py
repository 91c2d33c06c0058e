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


@pytest.mark.parametrize("path", SCRIPTS, ids=relative)
def test_script_ends_by_checking_itself(path: Path) -> None:
    last = path.read_text().rstrip().split("\n\n")[-1]
    assert re.search(r"grep|\[ |test |assert|is-enabled|command -v|dpkg-query|ifconfig|sh -n|--help|--version", last)


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


def test_idempotence_check_finds_a_script_that_appends(tmp_path: Path) -> None:
    """Here in a folder of the test's own, in place of the system's."""
    text = (PROVISION / "idempotence_check").read_text()
    for places in ("find /etc /boot /usr/local ", "in /etc /usr/local /boot/grub /boot/loader.conf.d;"):
        assert places in text
        first, end = places.split()[0], ";" * places.endswith(";")
        text = text.replace(places, f"{first} {tmp_path}/etc{end} ")
    (tmp_path / "etc").mkdir()
    (tmp_path / "idempotence_check").write_text(text.replace("/tmp/fwlab-", f"{tmp_path}/state-"))
    for body, status in ((f"echo a >{tmp_path}/etc/f", 0), (f"echo a >>{tmp_path}/etc/f", 1)):
        (tmp_path / "run").write_text(f"{body}\n")
        done = subprocess.run(["sh", tmp_path / "idempotence_check", "x"], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        assert ("the second run changed" in done.stderr) == (f"{tmp_path}/etc/f" in done.stdout) == bool(status)


def test_unknown_role_is_refused() -> None:
    done = subprocess.run([PROVISION / "run", "no-such-role"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no-such-role" in done.stderr


def test_host_install_prints_what_root_must_run(tmp_path: Path) -> None:
    fakes = {"id": "echo 1000", "dpkg-query": "exit 1", "apt-get": "echo called >&2; exit 9"}
    for name, body in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([PROVISION / "host/install"], capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert "apt-get install --no-install-recommends vagrant " in done.stderr
    assert "called" not in done.stderr


def test_host_install_of_a_list_that_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run([PROVISION / "host/install", "packages-none.txt"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "packages-none.txt" in done.stderr


@pytest.mark.parametrize("name", ["packages.txt", "packages-browser.txt"])
def test_host_install_does_nothing_when_nothing_is_missing(tmp_path: Path, name: str) -> None:
    listed = "\\n".join(f"ii  {package}" for package in names(PROVISION / "host" / name))
    (tmp_path / "dpkg-query").write_text(f"#!/bin/sh\nprintf '{listed}\\n'\n")
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 9\n")
    for fake in ("dpkg-query", "apt-get"):
        (tmp_path / fake).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert subprocess.run([PROVISION / "host/install", name], env=env).returncode == 0
