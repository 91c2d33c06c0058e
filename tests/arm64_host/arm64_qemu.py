# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 12's QEMU and libvirt for arm64, and the user-mode emulator that runs them here, in folders of their own.

Nothing is installed. The program that libvirt starts is a script, because this host's kernel need not know arm64
programs.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fwlab.model.errors import CannotMeasure

SUITE = "bookworm"
#: The parts of an unpacked package that are kept. Others, such as /dev, would hide those of this host.
KEPT = ("./usr", "./lib")
PROGRAM = "usr/bin/qemu-system-x86_64"
EMULATOR = "usr/bin/qemu-aarch64-static"
DRIVERS = "usr/lib/aarch64-linux-gnu/libvirt/connection-driver"
#: ELF's number of the architecture (EM_AARCH64), and where it stands in a file's header.
AARCH64, MACHINE_AT = 183, 18

#: The user-mode emulator does not know seccomp(2), which libvirt asks QEMU for.
SCRIPT = """#!/bin/sh
# Runs QEMU for arm64. Takes QEMU's arguments and leaves out -sandbox, which a user-mode emulator cannot do.
count=$#
while [ "$count" -gt 0 ]; do
    word=$1
    shift
    count=$((count - 1))
    if [ "$word" = -sandbox ]; then
        shift
        count=$((count - 1))
    else
        set -- "$@" "$word"
    fi
done
exec '{emulator}' -L '{root}' '{program}' "$@"
"""


@dataclass(frozen=True)
class Arm64Qemu:
    """Both programs, unpacked below `folder`."""

    folder: Path

    @property
    def program(self) -> Path:
        """QEMU for arm64, which emulates x86-64 machines."""
        return self.folder / "arm64" / PROGRAM

    @property
    def emulator(self) -> Path:
        """The emulator of arm64 programs."""
        return self.folder / "host" / EMULATOR

    @property
    def virsh(self) -> list[str]:
        """libvirt's client for arm64."""
        return [str(self.emulator), "-L", str(self.folder / "arm64"), str(self.folder / "arm64/usr/bin/virsh")]

    @property
    def libvirt_variables(self) -> dict[str, str]:
        """What it needs to find its parts."""
        return {"LIBVIRT_DRIVER_DIR": str(self.folder / "arm64" / DRIVERS)}

    @property
    def script(self) -> Path:
        """What libvirt starts in place of QEMU."""
        return self.folder / "qemu-system-x86_64"

    def version(self) -> str:
        """As QEMU says itself. Raises CannotMeasure if it does not run."""
        return _version([str(self.script)], self.folder)

    def emulator_version(self) -> str:
        """As the emulator says itself. Raises CannotMeasure if it does not run."""
        return _version([str(self.emulator)], self.folder)


def arm64_qemu(project: Path, folder: Path, log: Path) -> Arm64Qemu:
    """Both, unpacked from Debian packages unless they are there. Raises CannotMeasure."""
    qemu = Arm64Qemu(folder)
    for name, architecture, packages, program in (
        ("arm64", "arm64", "qemu-system-x86,libvirt-clients,libvirt-daemon-driver-qemu", PROGRAM),
        ("host", _own_architecture(), "qemu-user-static", EMULATOR),
    ):
        if not (folder / name / program).exists():
            _unpack(project, folder / name, architecture, packages, log)
    if (found := elf_machine(qemu.program)) != AARCH64:
        raise CannotMeasure(f"{qemu.program} is for ELF machine {found}, not arm64", f"rm -r {folder / 'arm64'}")
    words = {"emulator": qemu.emulator, "root": folder / "arm64", "program": qemu.program}
    qemu.script.write_text(SCRIPT.format(**words))
    qemu.script.chmod(0o755)
    qemu.version()
    return qemu


def elf_machine(program: Path) -> int:
    """The architecture that a program is for, as ELF numbers it; 0 if it is no such file."""
    with program.open("rb") as file:
        head = file.read(MACHINE_AT + 2)
    return int(struct.unpack_from("<H", head, MACHINE_AT)[0]) if head.startswith(b"\x7fELF") else 0


def _version(command: list[str], folder: Path) -> str:
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    if said.returncode or "version" not in said.stdout:
        words = (said.stderr.strip().splitlines() or ["it prints no version"])[-1]
        raise CannotMeasure(f"{command[0]} does not run: {words}", f"rm -r {folder}")
    return said.stdout.splitlines()[0]


def _own_architecture() -> str:
    """Debian's name for this host's."""
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def _unpack(project: Path, root: Path, architecture: str, packages: str, log: Path) -> None:
    """Unpack packages and what they depend on. Raises CannotMeasure."""
    mirrors = subprocess.run([str(project / "packer/base/mirrors"), SUITE], capture_output=True, text=True, check=False)
    if mirrors.returncode:
        raise CannotMeasure(mirrors.stderr.strip(), "make setup")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix="unpacking-") as made:
        work = Path(made)
        (work / "root").mkdir()
        (work / "sources.list").write_text(mirrors.stdout)
        command = ["mmdebstrap", f"--architectures={architecture}", "--variant=extract", f"--include={packages}"]
        command += ["--aptopt=APT::Install-Recommends false", "--format=tar", SUITE]
        command += [str(work / "root.tar"), str(work / "sources.list")]
        listed = ["tar", "-t", "-f", str(work / "root.tar")]
        environment = {**os.environ, "TMPDIR": os.environ.get("TMPDIR", "/var/tmp")}
        with log.open("ab") as output:
            _run(command, log, stdout=output, environment=environment)
            kept = _kept(subprocess.run(listed, capture_output=True, text=True, check=True).stdout)
            tar = ["tar", "-x", "--no-same-owner", "-C", str(work / "root"), "-f", str(work / "root.tar"), *kept]
            _run(tar, log, stdout=output, environment=environment)
        shutil.rmtree(root, ignore_errors=True)
        (work / "root").rename(root)


def _kept(listed: str) -> list[str]:
    """Of KEPT, what the archive has."""
    return [name for name in KEPT if any(line.startswith(f"{name}/") for line in listed.splitlines())]


def _run(command: list[str], log: Path, *, stdout: object, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        env=environment,
        check=False,
    )
    if done.returncode:
        errors = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("E:", "tar:"))]
        words = errors[-1] if errors else f"exit {done.returncode}"
        raise CannotMeasure(f"{command[0]}: {words}", f"read {log}; then the same command again")
