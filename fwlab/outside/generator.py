# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay engine on the generator: put a frame table there, play it, read what left the NIC."""

from __future__ import annotations

import contextlib
import json
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

from fwlab.outside.ssh import Ssh
from fwlab.words.errors import CannotMeasure

TABLE = "/run/fwlab-table"
#: Ends the engine when its input closes: when the host is done, or gone.
_PLAY = (
    "exec 3<&0; fwlab-replay --dev {dev} --table {table} --json {options} </dev/null & p=$!; "
    "(read -r _ <&3; kill -TERM $p 2>/dev/null) & w=$!; wait $p; r=$?; kill $w 2>/dev/null; exit $r"
)


@dataclass(frozen=True)
class Played:
    """What the engine reports: attempted, and of these sent (what left the NIC)."""

    sent: int
    attempted: int
    duration_s: float

    @property
    def rate(self) -> float:
        return self.sent / self.duration_s if self.duration_s else 0.0


class Playing:
    """Traffic under way."""

    def __init__(self, ssh: Ssh, process: subprocess.Popen[bytes]) -> None:
        self._ssh = ssh
        self._process = process

    def stop(self, timeout: float = 60) -> Played:
        """End it now and return the counts."""
        return self._finish(b"stop\n", timeout)

    def wait(self, timeout: float) -> Played:
        """Wait until a counted or timed run ends by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self._finish(b"stop\n", 60)

    def abandon(self) -> None:
        self._process.kill()
        self._process.wait()

    def _finish(self, data: bytes, timeout: float) -> Played:
        try:
            out, errors = self._process.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            self.abandon()
            raise CannotMeasure("generator: the replay engine does not stop", "vagrant reload LAB") from error
        words = errors.decode(errors="replace").strip()
        if self._process.returncode == 255:
            raise self._ssh.lost(words)
        lines = out.decode(errors="replace").strip().splitlines()
        if self._process.returncode or not lines:
            raise CannotMeasure(
                f"generator: the replay engine ended with {self._process.returncode}: {words or 'no words'}",
                "vagrant ssh LAB-generator, then `fwlab-replay --check`",
            )
        report = json.loads(lines[-1])
        return Played(report["sent"], report["attempted"], report["duration_s"])


class Replay:
    """The engine `replay`."""

    name = "replay"

    def __init__(self, ssh: Ssh, device: str) -> None:
        self._ssh = ssh
        self._device = device
        self._on_node: Path | None = None

    def use(self, table: Path) -> None:
        """Put the frame table on the generator, unless it is there already."""
        if self._on_node == table:
            return
        data = zlib.compress(table.read_bytes(), 6)
        unpack = "import sys,zlib;sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))"
        self._ssh.run(f'python3 -c "{unpack}" > {TABLE}', data=data, timeout=180)
        self._on_node = table

    def start(self, *, load: float | None = None, count: int | None = None) -> Playing:
        """Play flat out, or at `load` packets per second; until stopped, or `count` packets."""
        options = []
        if load is not None:
            options.append(f"--rate {load:g}")
        if count is not None:
            options.append(f"--count {count}")
        command = _PLAY.format(dev=self._device, table=TABLE, options=" ".join(options))
        return Playing(self._ssh, self._ssh.open(command))
