# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `replay`: copies a frame table to the generator, plays it there and reads the engine's report."""

import contextlib
import gzip
import json
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from fwlab.checkout.project import Project
from fwlab.generator.protocol import Availability, PlaybackResult, TcpEndpoints, check_load
from fwlab.generator.traffic_store import FIRST_LINK, TrafficStore
from fwlab.host.root_shell import Program
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import Topology

#: Folder of the frame tables on the generator: in memory, but not in /run, which may use only a tenth of it.
FOLDER = "/dev/shm/fwlab-tables"  # noqa: S108
#: Maximum size of the tables there, in bytes. The least recently used is removed first.
CACHE_BYTES = 96 << 20
#: Stops the engine when the command's input closes, either because the host is done or because it is gone. On a busy
#: host the engine may take a second to install its signal handlers, and a SIGTERM before that would kill it without a
#: report. So SIGTERM is ignored at first, and sent repeatedly. The process that sends it must not hold the engine's
#: outputs, or SSH would wait for its last sleep.
_PLAY = (
    "exec 3<&0; trap '' TERM; fwlab-replay --dev {dev} --table {table} --json {options} </dev/null & p=$!; "
    "trap - TERM; (read -r _ <&3; for _ in $(seq 60); do kill -TERM $p || break; sleep 0.5; done) >/dev/null 2>&1 & "
    "w=$!; wait $p; r=$?; kill $w 2>/dev/null; {after}exit $r"
)
#: From this number of frames on, a counted run at a set load uses the engine's virtio driver if the generator's CPU is
#: emulated. The XDP driver would keep that CPU busy at a few thousand frames per second, because each of its many small
#: test runs allocates and clears pages. The host's CPU time it uses is then missing at the DUT, whose ring overruns.
MIN_LONG_RUN = 16384
_VIRTIO_DRIVER = "--driver virtio"
#: Afterwards the NIC is a new device to the kernel, and systemd-networkd restores its addresses and neighbours within
#: about a second. Wait for that: without them nothing more can be measured from this machine.
_AWAIT_ADDRESSES = (
    "/lib/systemd/systemd-networkd-wait-online -q -i {dev} --timeout=60 "
    "|| {{ echo the addresses of {dev} were not restored >&2; r=1; }}; "
)


class ReplayPlayback:
    """A playback by fwlab-replay."""

    def __init__(self, ssh: Ssh, process: Program, intended_pps: float | None = None) -> None:
        self._ssh = ssh
        self._process = process
        self._intended_pps = intended_pps

    def stop(self, timeout: float = 60) -> PlaybackResult:
        """Stop sending and return the counts."""
        try:
            out, errors = self._process.communicate(b"stop\n", timeout=timeout)
        except subprocess.TimeoutExpired as error:
            self.abandon()
            raise CannotMeasure("generator: the replay engine does not stop", "vagrant reload LAB") from error
        said = errors.decode(errors="replace").strip()
        if self._process.returncode == 255:
            raise self._ssh.lost(said)
        lines = out.decode(errors="replace").strip().splitlines()
        if self._process.returncode or not lines:
            raise CannotMeasure(
                f"generator: the replay engine ended with {self._process.returncode}: {said or 'no message'}",
                "vagrant ssh LAB-generator, then `fwlab-replay --check`",
            )
        report = json.loads(lines[-1])
        return PlaybackResult(report["sent"], report["duration_s"], self._intended_pps)

    def wait(self, timeout: float) -> PlaybackResult:
        """Wait until a counted playback ends by itself, but stop it after `timeout` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self.stop()

    def abandon(self) -> None:
        """Kill the engine's process; the counts are lost."""
        self._process.kill()
        self._process.wait()


class Replay:
    """The engine `replay` of one session."""

    def __init__(self, ssh: Ssh, device: str, *, emulated: bool = False) -> None:
        """`emulated`: the generator has an emulated CPU and a virtio NIC."""
        self._ssh = ssh
        self._device = device
        self._emulated = emulated
        self._cached: dict[Path, tuple[str, int]] = {}
        self._selected: tuple[TrafficStore, str] | None = None
        self._copied = 0

    def use(self, store: TrafficStore, traffic: str) -> None:
        """Select a traffic. It is copied when it is played: a load in the DUT's own time needs no copy."""
        self._selected = store, traffic

    def _table(self) -> str:
        """The frame table's path on the generator, where it is copied unless it is already there."""
        if self._selected is None:
            raise ValueError("no traffic was selected")
        store, traffic = self._selected
        table = store.path(traffic)
        if table not in self._cached:
            self._copy(table)
        self._cached[table] = self._cached.pop(table)  # the most recently used is last
        return self._cached[table][0]

    def _copy(self, table: Path) -> None:
        data = table.read_bytes()
        removed = [] if self._cached else [f"{FOLDER}/*"]  # left by an earlier session
        while self._cached and sum(size for _, size in self._cached.values()) + len(data) > CACHE_BYTES:
            removed.append(self._cached.pop(next(iter(self._cached)))[0])
        self._copied += 1
        name = f"{FOLDER}/{self._copied}"
        command = f"mkdir -p {FOLDER}; rm -f {' '.join(removed)}; gzip -dc > {name}"
        self._ssh.run(command, data=gzip.compress(data, 1), timeout=180)
        self._cached[table] = (name, len(data))

    def start(self, *, load: float | None = None, count: int | None = None) -> ReplayPlayback:
        """Send flat out, or at `load` packets per second; until stopped, or until `count` packets are sent."""
        check_load(load)
        options: list[str] = []
        after = ""
        if load is not None:
            options.append(f"--rate {load:g}")
        if count is not None:
            options.append(f"--count {count}")
        if self._emulated and load is not None and count is not None and count >= MIN_LONG_RUN:
            options.append(_VIRTIO_DRIVER)
            after = _AWAIT_ADDRESSES.format(dev=self._device)
        command = _PLAY.format(dev=self._device, table=self._table(), options=" ".join(options), after=after)
        return ReplayPlayback(self._ssh, self._ssh.launch(command), load)

    def close(self) -> None:
        """Nothing to do: the engine runs only while it sends."""


class ReplayKind:
    """The engine `replay` in the registry."""

    name, position, automatic = "replay", 2, True

    def availability(self, project: Project) -> Availability:
        return Availability(True, "part of every generator image")

    def check(self, store: TrafficStore, traffic: str, *, asked: bool) -> None:
        store.path(traffic)

    def make(self, ssh: Ssh, topology: Topology, *, emulated: bool) -> Replay:
        return Replay(ssh, topology.end(FIRST_LINK, "generator").dev, emulated=emulated)

    def tcp_endpoints(
        self, generator: Ssh, sink: Ssh, topology: Topology, connections: Connections, *, emulated: bool
    ) -> AbstractContextManager[TcpEndpoints] | None:
        return None


ENGINE = ReplayKind()
