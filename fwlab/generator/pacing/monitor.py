# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's monitor, through libvirt: network devices and objects that come and go while a machine runs."""

import contextlib
import json
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from fwlab.host.environment import libvirt_uri, timeout_scale
from fwlab.model.errors import CannotMeasure

#: All commands of one call take a tenth of a second on an idle host. After this something is broken (s).
TIMEOUT_S = 60


class Monitor:
    """The monitor of one machine, by libvirt's name of it."""

    def __init__(self, domain: str) -> None:
        self._domain = domain

    def commands(self, *commands: tuple[str, dict[str, Any]]) -> list[str]:
        """Execute QEMU's commands (QMP), one after the other. Returns what QEMU refused, in its words."""
        lines = [
            shlex.join(["qemu-monitor-command", self._domain, json.dumps({"execute": name, "arguments": arguments})])
            for name, arguments in commands
        ]
        answers = self._virsh(lines)
        found = [json.loads(line) for line in answers.splitlines() if line.startswith("{")]
        return [answer["error"]["desc"] for answer in found if "error" in answer]

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """In this context the machine's clock stands still."""
        self._virsh([f"suspend {self._domain}"])
        try:
            yield
        finally:
            self._virsh([f"resume {self._domain}"])

    def _virsh(self, lines: Sequence[str]) -> str:
        argv = ["virsh", "--quiet", "--connect", libvirt_uri()]
        try:
            done = subprocess.run(
                argv,
                input="\n".join(lines) + "\n",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S * timeout_scale(),
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotMeasure(f"virsh: {error}", "fwlab doctor") from error
        if "error:" in done.stderr:
            raise CannotMeasure(f"virsh {lines[0].split()[0]} {self._domain}: {done.stderr.strip()}", "fwlab doctor")
        return done.stdout
