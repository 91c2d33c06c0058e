# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMU that emulates the host. Debian 12's own knows no SR-IOV, so a newer one is unpacked beside it.

It comes from Debian's backports, with its libraries and firmware, into a folder of its own. Nothing is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fwlab.model.errors import CannotMeasure

SUITE = "bookworm"
PROGRAM = "usr/bin/qemu-system-x86_64"
LOADER = "lib64/ld-linux-x86-64.so.2"
LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio")
FIRMWARE = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")
#: igb and its virtual functions came with QEMU 8.0; the combination that is used here was tried with 10.0.
OLDEST = 10


@dataclass(frozen=True)
class PrivateQemu:
    """QEMU in a folder of its own."""

    root: Path

    @property
    def command(self) -> list[str]:
        """The program and the arguments that make it use its own libraries and firmware."""
        libraries = ":".join(str(self.root / folder) for folder in LIBRARIES)
        firmware = [word for folder in FIRMWARE for word in ("-L", str(self.root / folder))]
        return [str(self.root / LOADER), "--library-path", libraries, str(self.root / PROGRAM), *firmware]

    def version(self) -> str:
        """As it says itself. Raises CannotMeasure if it does not run or is too old."""
        said = subprocess.run([*self.command, "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"version ((\d+)\.\S+)", said.stdout)
        if found is None:
            words = (said.stderr.strip().splitlines() or ["it prints no version"])[-1]
            raise CannotMeasure(f"{self.root / PROGRAM} does not run: {words}", f"rm -r {self.root}")
        if int(found[2]) < OLDEST:
            raise CannotMeasure(f"{self.root / PROGRAM} is {found[1]}, older than {OLDEST}", f"rm -r {self.root}")
        return found[1]


def private_qemu(project: Path, folder: Path, log: Path) -> PrivateQemu:
    """The newer QEMU in `folder`/qemu, unpacked unless it is there. Raises CannotMeasure."""
    root = folder / "qemu"
    if not (root / PROGRAM).exists():
        _unpack(project, root, log)
    qemu = PrivateQemu(root)
    qemu.version()
    return qemu


def with_backports(sources: str) -> str:
    """Apt's sources for SUITE, and the backports of the same mirror. Raises CannotMeasure if they name no mirror."""
    for line in sources.splitlines():
        found = re.fullmatch(rf"(deb (?:\[[^\]]*\] )?\S+) {SUITE} main", line.strip())
        if found:
            return f"{sources.rstrip()}\n{found[1]} {SUITE}-backports main\n"
    raise CannotMeasure(f"packer/base/mirrors names no mirror of {SUITE}", f"packer/base/mirrors {SUITE}")


def _unpack(project: Path, root: Path, log: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        raise CannotMeasure("mmdebstrap is missing", "make setup")
    mirrors = subprocess.run([str(project / "packer/base/mirrors"), SUITE], capture_output=True, text=True, check=False)
    if mirrors.returncode:
        raise CannotMeasure(mirrors.stderr.strip(), "make setup")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix="unpacking-") as made:
        work = Path(made)
        (work / "sources.list").write_text(with_backports(mirrors.stdout))
        command = [
            *("mmdebstrap", "--variant=extract", "--include=qemu-system-x86", "--format=tar"),
            *("--aptopt=APT::Install-Recommends false", f'--aptopt=APT::Default-Release "{SUITE}-backports"'),
            *(SUITE, str(work / "root.tar"), str(work / "sources.list")),
        ]
        (work / "root").mkdir()
        tar = ["tar", "-x", "--no-same-owner", "-C", str(work / "root"), "-f", str(work / "root.tar")]
        environment = {**os.environ, "TMPDIR": os.environ.get("TMPDIR", "/var/tmp")}
        with log.open("ab") as output:
            for words in (command, tar):
                done = subprocess.run(
                    words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, check=False
                )
                if done.returncode:
                    raise CannotMeasure(_why(log, words[0]), f"read {log}; then the same command again")
        if not (work / "root" / PROGRAM).exists():
            raise CannotMeasure(f"Debian's {SUITE}-backports have no {PROGRAM}", f"read {log}")
        PrivateQemu(work / "root").version()
        shutil.rmtree(root, ignore_errors=True)
        (work / "root").rename(root)


def _why(log: Path, program: str) -> str:
    """What the log says about a failure: apt's own last error, if it has one."""
    errors = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("E:", "tar:"))]
    about = [line for line in errors if "backports" in line or "qemu" in line] or errors
    words = about[0] if about else "no reason given"
    return f"the newer QEMU could not be unpacked from {SUITE}-backports: {program}: {words}"
