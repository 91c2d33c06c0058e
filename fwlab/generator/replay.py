# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay engine on the generator: put a frame table there, play it, read what left the NIC."""

from __future__ import annotations

import contextlib
import json
import subprocess
import zlib
from contextlib import AbstractContextManager
from pathlib import Path

from fwlab.generator.protocol import Availability, PlaybackResult, TcpEndpoints, check_load
from fwlab.generator.traffic_store import FIRST_LINK, TrafficStore
from fwlab.host.project import Project
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import Topology

#: Where tables lie on the generator: in memory, of which /run may take only a tenth.
FOLDER = "/dev/shm/fwlab-tables"  # noqa: S108
#: So many bytes of tables are kept there; what was not used for longest goes first.
KEPT = 96 << 20
#: Ends the engine when its input closes: when the host is done, or gone. A signal that comes before the engine listens
#: (on a busy host that may take a second) must not kill it, or it ends without its report: until then it is deaf, and
#: it is told again. What tells it holds none of its outputs, or SSH would wait for the last sleep's end.
_PLAY = (
    "exec 3<&0; trap '' TERM; fwlab-replay --dev {dev} --table {table} --json {options} </dev/null & p=$!; "
    "trap - TERM; (read -r _ <&3; for _ in $(seq 60); do kill -TERM $p || break; sleep 0.5; done) >/dev/null 2>&1 & "
    "w=$!; wait $p; r=$?; kill $w 2>/dev/null; {after}exit $r"
)
#: A counted run of so many frames at a load takes the NIC from the kernel, where the generator's CPU is emulated. The
#: usual driver keeps that busy with a few thousand frames a second, as each of its many small hand-overs makes and
#: clears pages of its own; what it takes of the host's cores is missing at the DUT, whose ring then runs over.
LONG = 16384
_OWN_DRIVER = "--driver virtio"
#: Then the kernel finds the NIC as new, and systemd-networkd gives it its addresses and neighbours, within a second or
#: so. What comes next may need them: without them nothing more can be measured from here.
_CONFIGURED = (
    "/lib/systemd/systemd-networkd-wait-online -q -i {dev} --timeout=60 "
    "|| {{ echo {dev} was not given its addresses back >&2; r=1; }}; "
)


class ReplayPlayback:
    """Traffic under way."""

    def __init__(self, ssh: Ssh, process: subprocess.Popen[bytes], intended_pps: float | None = None) -> None:
        self._ssh = ssh
        self._process = process
        self._asked = intended_pps

    def stop(self, timeout: float = 60) -> PlaybackResult:
        """End it now and return the counts."""
        return self._finish(b"stop\n", timeout)

    def wait(self, timeout: float) -> PlaybackResult:
        """Wait until a counted or timed run ends by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self._finish(b"stop\n", 60)

    def abandon(self) -> None:
        self._process.kill()
        self._process.wait()

    def _finish(self, data: bytes, timeout: float) -> PlaybackResult:
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
        return PlaybackResult(report["sent"], report["attempted"], report["duration_s"], self._asked)


class Replay:
    """The engine `replay`."""

    name = "replay"

    def __init__(self, ssh: Ssh, device: str, *, emulated: bool = False) -> None:
        """`emulated`: the generator has a CPU without KVM, and a virtio NIC."""
        self._ssh = ssh
        self._device = device
        self._emulated = emulated
        self._kept: dict[Path, tuple[str, int]] = {}
        self._table = ""
        self._sent = 0

    def use(self, store: TrafficStore, traffic: str) -> None:
        """Put the frame table on the generator, unless it is there already."""
        table = store.path(traffic)
        if table not in self._kept:
            self._send(table)
        self._kept[table] = self._kept.pop(table)  # the one that was used last
        self._table = self._kept[table][0]

    def _send(self, table: Path) -> None:
        data = table.read_bytes()
        gone = [] if self._kept else [f"{FOLDER}/*"]  # what a session before this one left
        while self._kept and sum(size for _, size in self._kept.values()) + len(data) > KEPT:
            gone.append(self._kept.pop(next(iter(self._kept)))[0])
        self._sent += 1
        name = f"{FOLDER}/{self._sent}"
        unpack = "import sys,zlib;sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))"
        command = f'mkdir -p {FOLDER}; rm -f {" ".join(gone)}; python3 -c "{unpack}" > {name}'
        self._ssh.run(command, data=zlib.compress(data, 1), timeout=180)
        self._kept[table] = (name, len(data))

    def start(self, *, load: float | None = None, count: int | None = None) -> ReplayPlayback:
        """Play flat out, or at `load` packets per second; until stopped, or `count` packets."""
        check_load(load)
        options, after = [], ""
        if load is not None:
            options.append(f"--rate {load:g}")
        if count is not None:
            options.append(f"--count {count}")
        if self._emulated and load is not None and count is not None and count >= LONG:
            options.append(_OWN_DRIVER)
            after = _CONFIGURED.format(dev=self._device)
        command = _PLAY.format(dev=self._device, table=self._table, options=" ".join(options), after=after)
        return ReplayPlayback(self._ssh, self._ssh.open(command), load)

    def close(self) -> None:
        """Nothing to do: the engine runs only while it plays."""


class ReplayKind:
    """The engine `replay` in the registry: part of every generator image."""

    name, position, automatic = Replay.name, 2, True

    def availability(self, project: Project) -> Availability:
        return Availability(True, "part of every generator image")

    def check(self, store: TrafficStore, traffic: str) -> None:
        store.path(traffic)

    def make(self, ssh: Ssh, topology: Topology, *, emulated: bool) -> Replay:
        return Replay(ssh, topology.end(FIRST_LINK, "generator").dev, emulated=emulated)

    def tcp_endpoints(
        self, generator: Ssh, sink: Ssh, topology: Topology, connections: Connections, *, emulated: bool
    ) -> AbstractContextManager[TcpEndpoints] | None:
        return None


ENGINE = ReplayKind()
