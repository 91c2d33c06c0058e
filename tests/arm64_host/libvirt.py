# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's arguments that libvirt for arm64 makes of a machine's description: those of this host's libvirt, or not.

Each libvirt runs in a process of its own, and starts nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fwlab.model.errors import CannotMeasure
from tests.arm64_host.arm64_qemu import Arm64Qemu

#: Asking QEMU what it can do takes some seconds; emulated, a minute (s).
LIMIT_S = 600
VARIABLE = re.compile(r"[A-Z_]+=")


def description(domain: str, uri: str) -> str:
    """The XML of a machine that exists. Raises CannotMeasure."""
    return _said_by(["virsh", "--quiet", "--connect", uri, "dumpxml", "--inactive", domain], {})


def architecture(qemu: Arm64Qemu) -> str:
    """The architecture that libvirt for arm64 takes the host for. Raises CannotMeasure."""
    with tempfile.TemporaryDirectory(prefix="fwlab-", dir="/tmp") as short:  # the names of sockets must be short
        said = _said_by([*qemu.virsh, "--quiet", "--connect", _embedded(short), "capabilities"], qemu.libvirt_variables)
    found = re.search(r"<host>.*?<arch>(\w+)</arch>", said, re.DOTALL)
    return found[1] if found else "unknown"


def arguments(virsh: Sequence[str], variables: Mapping[str, str], xml: str) -> list[str]:
    """QEMU's arguments that this virsh makes of the description, its own folder called ROOT. Raises CannotMeasure."""
    with tempfile.TemporaryDirectory(prefix="fwlab-", dir="/tmp") as short:
        file = Path(short) / "domain.xml"
        file.write_text(xml)
        command = [
            *virsh,
            "--quiet",
            "--connect",
            _embedded(short),
            "domxml-to-native",
            "qemu-argv",
            "--xml",
            str(file),
        ]
        said = _said_by(command, variables)
    words = [word.replace(short, "ROOT") for word in shlex.split(said)]
    return [word for word in words if not VARIABLE.match(word)]


def differences(one: Sequence[str], two: Sequence[str]) -> list[str]:
    """The words that only one of the two has."""
    return sorted(set(one) ^ set(two)) or ([] if list(one) == list(two) else ["their order"])


def _embedded(folder: str) -> str:
    return f"qemu:///embed?root={folder}/libvirt"


def _said_by(command: Sequence[str], variables: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotMeasure(f"{command[0]}: no answer within {LIMIT_S} s", "the same command again") from error
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["it gives no reason"])[-1]
        raise CannotMeasure(f"{command[0]}: {words}", "fwlab doctor")
    return done.stdout
