# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMU that emulates the host. It needs virtio NICs with virtual functions, which QEMU has from 10.1 on.

It comes from the backports of Debian 13, with its libraries and firmware, into a folder of its own. Nothing is
installed.
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

SUITE = "trixie"
PROGRAM = "usr/bin/qemu-system-x86_64"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio")
FIRMWARE = ("usr/share/qemu", "usr/share/seabios")
#: The combination that is used here was tried with 11.1.
OLDEST = 11
OS_RELEASE = Path("/etc/os-release")


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
    """The newer QEMU in `folder`, unpacked unless it is there. Raises CannotMeasure."""
    root = folder / f"qemu-{SUITE}"
    if not (root / PROGRAM).exists():
        _unpack(project, root, log)
    qemu = PrivateQemu(root)
    qemu.version()
    return qemu


def own_suite(os_release: str) -> str:
    """The suite whose mirrors have SUITE, too: this host's if it is a Debian, else SUITE itself."""
    found = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    return found.get("VERSION_CODENAME", SUITE) if found.get("ID") == "debian" else SUITE


def with_backports(sources: str, suite: str) -> str:
    """Apt's sources for `suite` as those for SUITE, with its backports. Raises CannotMeasure if they name no mirror."""
    parts = re.findall(rf"^(deb (?:\[[^\]]*\] )?\S+) {suite}(|-\w+) main$", sources, re.MULTILINE)
    for mirror, end in parts:
        if not end:
            parts.append((mirror, "-backports"))
            return "".join(f"{mirror} {SUITE}{end} main\n" for mirror, end in parts)
    raise CannotMeasure(f"packer/base/mirrors names no mirror of {suite}", f"packer/base/mirrors {suite}")


def _unpack(project: Path, root: Path, log: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        raise CannotMeasure("mmdebstrap is missing", "make setup")
    suite = own_suite(OS_RELEASE.read_text() if OS_RELEASE.exists() else "")
    mirrors = subprocess.run([str(project / "packer/base/mirrors"), suite], capture_output=True, text=True, check=False)
    if mirrors.returncode:
        raise CannotMeasure(mirrors.stderr.strip(), "make setup")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix="unpacking-") as made:
        work = Path(made)
        (work / "sources.list").write_text(with_backports(mirrors.stdout, suite))
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
        for old in root.parent.glob("qemu*"):
            shutil.rmtree(old)
        (work / "root").rename(root)


def _why(log: Path, program: str) -> str:
    """What the log says about a failure: apt's own last error, if it has one."""
    errors = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("E:", "tar:"))]
    about = [line for line in errors if "backports" in line or "qemu" in line] or errors
    words = about[0] if about else "no reason given"
    return f"the newer QEMU could not be unpacked from {SUITE}-backports: {program}: {words}"
