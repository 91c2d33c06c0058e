# SPDX-License-Identifier: GPL-2.0-or-later
"""provision/host/install on Debian, on a release that lacks a package, and where there is no dpkg."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fwlab.cli.doctor import BUILDING
from fwlab.cli.doctor import PROGRAMS as EXAMINED
from tests import ROOT

INSTALL = ROOT / "provision/host/install"
#: What the script itself calls, beside the shell's own commands.
TOOLS = ("dirname", "sed", "true")
PROGRAMS = ("vagrant", "virsh", "qemu-system-x86_64", "qemu-img", "ssh", "zstd", "xorriso", "python3", "git", "ip")


class Host:
    """A host with nothing but these programs. `ran`: the calls of apt-get."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        for name in TOOLS:
            found = shutil.which(name)
            assert found
            (folder / name).symlink_to(found)
        self.program("id", "echo 0")

    def program(self, name: str, lines: str = "exit 0") -> None:
        """Put a program on the PATH."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)

    def debian(self, installed: str, offered: str) -> None:
        """A host with dpkg and apt: the packages it has, and those that its release has."""
        self.program("dpkg-query", "\n".join(f"echo 'ii  {name}'" for name in installed.split()))
        answer = f'case " {offered} " in *" $name "*) echo "     $name | 1 | a source";; esac'
        self.program("apt-cache", f"shift; for name; do {answer}; done")
        self.program("apt-get", f'echo "$*" >> {self.calls}')

    def install(self, names: str, *lists: str) -> subprocess.CompletedProcess[str]:
        """Run a copy of the script where the first of these packages runs labs, and the others build the boxes."""
        shutil.copy(INSTALL, self.folder / "install")
        first, *others = names.split()
        (self.folder / "packages.txt").write_text(f"# a comment\n{first}\n")
        (self.folder / "packages-build.txt").write_text("".join(f"{name}\n" for name in others))
        command = ["/bin/sh", str(self.folder / "install"), *lists]
        return subprocess.run(command, env={"PATH": str(self.folder)}, capture_output=True, text=True, check=False)

    @property
    def ran(self) -> list[str]:
        """apt-get's arguments, call by call."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host without a package manager."""
    return Host(tmp_path)


SAYS = "provision/host/install: "
LACKING = f"{SAYS}this release has no packer: see guides/hosts.md\n"
INSTALLED = "-q -y --no-install-recommends install"


@pytest.mark.parametrize(
    ("installed", "offered", "names", "says", "ran"),
    [
        ("git", "make git packer", "git packer", f"{SAYS}installing packer\n", ["-q update", f"{INSTALLED} packer"]),
        ("git packer", "make git packer", "git packer", "", []),
        ("", "make git packer", "git packer -- packages.txt", f"{SAYS}installing git\n", [..., f"{INSTALLED} git"]),
        ("git", "make git vagrant", "git packer vagrant", LACKING, [..., f"{INSTALLED} vagrant"]),
        ("git", "make git", "git packer", LACKING, []),
        ("git", "nothing", "git packer", "", ["-q update"]),
    ],
    ids=["missing", "complete", "what runs labs alone", "lacking", "nothing but lacking", "without package lists"],
)
def test_what_is_missing_and_there_is_installed(
    host: Host, installed: str, offered: str, names: str, says: str, ran: list[str]
) -> None:
    """A host that lacks only what its release lacks asks no mirror: every `make` calls the script."""
    host.debian(installed, offered)
    packages, _, lists = names.partition(" -- ")
    done = host.install(packages, *lists.split())
    assert done.returncode == 0
    assert says in done.stderr
    assert done.stderr or not says
    assert host.ran[-1:] == ran[-1:] if ... in ran else host.ran == ran


def test_an_ordinary_user_is_told_the_command(host: Host) -> None:
    host.debian("git", offered="make git packer")
    host.program("id", "echo 1000")
    done = host.install("git packer")
    assert (done.returncode, host.ran) == (2, [])
    assert "apt-get update && apt-get install --no-install-recommends packer" in done.stderr


@pytest.mark.parametrize("lacking", [(), ("zstd", "ip")])
def test_without_dpkg_programs_are_looked_for(host: Host, lacking: tuple[str, ...]) -> None:
    for name in PROGRAMS:
        if name not in lacking:
            host.program(name)
    done = host.install("git packer")
    assert done.returncode == (2 if lacking else 0)
    assert ("Install these programs by hand: zstd ip\n" in done.stderr) == bool(lacking)
    assert ("guides/hosts.md" in done.stderr) == bool(lacking)


def test_what_doctor_requires_is_looked_for(host: Host) -> None:
    named = host.install("git").stderr.partition("by hand:")[2].split("\n")[0].split()
    assert set(named) >= set(EXAMINED) - set(BUILDING)


def test_a_list_that_is_not_there_is_an_error(host: Host) -> None:
    host.debian("git", offered="make git")
    host.install("git")
    command = ["/bin/sh", str(host.folder / "install"), "packages-x.txt"]
    done = subprocess.run(
        command, env={**os.environ, "PATH": str(host.folder)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "packages-x.txt" in done.stderr
