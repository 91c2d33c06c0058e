# SPDX-License-Identifier: GPL-2.0-or-later
"""The filters on the DUT's links: what holds frames until the next tick, and what records those that pass.

QEMU's monitor attaches them, through libvirt, while the machine runs.
"""

import contextlib
import itertools
import json
import os
import shlex
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwlab.checkout.own_folder import own_folder
from fwlab.model.errors import CannotMeasure
from fwlab.testbed.qemu_process import virsh

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
        done = virsh(timeout_s=TIMEOUT_S, text="\n".join(lines) + "\n")
        if "error:" in done.stderr:
            raise CannotMeasure(f"virsh {lines[0].split()[0]} {self._domain}: {done.stderr.strip()}", "fwlab doctor")
        return done.stdout


#: Names of what is added to QEMU. The device of the ticks has its own hub, because a filter passes nothing on from
#: a device without a peer.
CLOCK, CLOCK_HUB, HUB_NUMBER = "fwlab-clock", "fwlab-clock-hub", 4096
HOLD, HOLD_TICK, TICKS = "fwlab-hold", "fwlab-hold-tick", "fwlab-ticks"
RECORDERS = ("fwlab-received", "fwlab-forwarded", "fwlab-returned")
#: Ticks are sent to this port and never answered; nothing listens there.
NOBODY = 9
#: Attempts to make all recorders in one second of the host's clock, and how much of it must be left to begin (s).
ATTEMPTS, MIN_LEFT_S = 10, 0.2
#: A command of QEMU's monitor and its arguments.
Command = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Wires:
    """The network devices of a DUT's two links in QEMU, by name, and the address on which QEMU listens.

    link_port  where QEMU takes frames of the first link
    """

    first: str
    last: str
    address: str
    link_port: int


@dataclass(frozen=True)
class Recorded:
    """The files of the recorders, in this folder."""

    folder: Path

    @property
    def received(self) -> Path:
        """Frames that reached the DUT's first NIC."""
        return self.folder / RECORDERS[0]

    @property
    def forwarded(self) -> Path:
        """Frames that the DUT sent by its last NIC."""
        return self.folder / RECORDERS[1]

    @property
    def returned(self) -> Path:
        """Frames that the DUT sent by its first NIC."""
        return self.folder / RECORDERS[2]


@dataclass(frozen=True)
class Attached(Recorded):
    """What a play needs while the filters are attached.

    pipe        descriptor from which ticks are read
    clock_port  where QEMU takes ticks
    """

    pipe: int
    clock_port: int


def wires_of(arguments: list[str], ports: tuple[int, int], address: str) -> Wires:
    """The devices of a QEMU with these arguments whose sockets have these local ports. Raises CannotMeasure."""
    devices = {}
    for option, value in itertools.pairwise(arguments):
        if option == "-netdev":
            given = _options(value)
            devices[given.get("localaddr")] = given.get("id", "")
    try:
        first, last = (devices[f"{address}:{port}"] for port in ports)
    except KeyError:
        raise CannotMeasure(
            "the DUT's links are not socket links, so its own clock cannot pace a load",
            "unset FWLAB_LINK; vagrant destroy -f LAB; vagrant up LAB",
        ) from None
    return Wires(first, last, address, ports[0])


def _options(value: str) -> Mapping[str, str]:
    """The options of -netdev, written as JSON (by libvirt) or with commas."""
    if value.startswith("{"):
        return {name: str(given) for name, given in json.loads(value).items()}
    pairs = (part.partition("=") for part in value.split(","))
    return {name: given for name, _, given in pairs}


@contextlib.contextmanager
def recording(monitor: Monitor, wires: Wires, *, kept: int) -> Iterator[Recorded]:
    """Record what the DUT sends by either NIC while the context is open; the files go with it.

    kept  bytes of each frame that are recorded

    Raises CannotMeasure with QEMU's own words.
    """
    with _folder() as folder, _added(monitor, _senders(wires, folder, kept)):
        yield Recorded(folder)


@contextlib.contextmanager
def attached(monitor: Monitor, wires: Wires, *, tick_us: int, kept: int) -> Iterator[Attached]:
    """Attach everything while the context is open. Enter it while the DUT is suspended: ticks then agree everywhere.

    kept  bytes of each frame that are recorded

    Raises CannotMeasure with QEMU's own words.
    """
    with _folder() as folder:
        ticks = folder / TICKS
        os.mkfifo(ticks)
        if not os.getuid():
            ticks.chmod(0o622)
        pipe = os.open(ticks, os.O_RDONLY | os.O_NONBLOCK)  # or QEMU would wait for a reader
        try:
            port = _unused_port(wires.address)
            with _added(monitor, _additions(wires, folder, port, tick_us=tick_us, kept=kept), pipe):
                yield Attached(folder, pipe, port)
        finally:
            os.close(pipe)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with own_folder("fwlab-wires-") as folder:
        if not os.getuid():  # libvirt runs root's machines as another user
            folder.chmod(0o733)
        yield folder


@contextlib.contextmanager
def _added(monitor: Monitor, additions: list[Command], pipe: int | None = None) -> Iterator[None]:
    try:
        refused = _add(monitor, additions, pipe)
        if refused:  # a session that was killed may have left its own
            monitor.commands(*_removals())
            _discard(pipe)
            refused = _add(monitor, additions, pipe)
        if refused:
            raise CannotMeasure(f"QEMU cannot watch the DUT's links: {refused[0]}", "vagrant reload LAB")
        yield
    finally:
        monitor.commands(*_removals(additions))


def _add(monitor: Monitor, additions: list[Command], pipe: int | None) -> list[str]:
    """Carry out the commands within one second of the host's clock; returns what QEMU refused.

    A recorder adds the whole second of the host's clock in which it was made to the DUT's clock. Of two that were made
    in different seconds, one would be a second ahead, and no frame would seem to leave in the trial in which it came.
    """
    for _ in range(ATTEMPTS):
        if (left := 1 - time.time() % 1) < MIN_LEFT_S:
            time.sleep(left)
        began = int(time.time())
        refused = monitor.commands(*additions)
        if refused or int(time.time()) == began:
            return refused
        monitor.commands(*_removals(additions))
        _discard(pipe)
    raise CannotMeasure("QEMU cannot watch the DUT's links: this host is too busy", "fwlab doctor")


def _discard(pipe: int | None) -> None:
    """Empty the pipe: a recorder begins with a header, and the player expects one."""
    if pipe is not None:
        with contextlib.suppress(BlockingIOError):
            while os.read(pipe, 1 << 16):
                pass


def _recorder(folder: Path, name: str, device: str, queue: str, max_bytes: int) -> Command:
    file = str(folder / name)
    return "object-add", {
        "qom-type": "filter-dump",
        "id": name,
        "netdev": device,
        "queue": queue,
        "file": file,
        "maxlen": max_bytes,
    }


def _senders(wires: Wires, folder: Path, kept: int) -> list[Command]:
    """Recorders of what the DUT sends."""
    _, forwarded, returned = RECORDERS
    return [
        _recorder(folder, forwarded, wires.last, "rx", kept),
        _recorder(folder, returned, wires.first, "rx", kept),
    ]


def _additions(wires: Wires, folder: Path, port: int, *, tick_us: int, kept: int) -> list[Command]:
    """QEMU's commands. Timers of the same instant run in the order in which they were made: frames before the tick."""

    def held(name: str, device: str) -> Command:
        return "object-add", {
            "qom-type": "filter-buffer",
            "id": name,
            "netdev": device,
            "queue": "tx",
            "interval": tick_us,
        }

    nobody, listens = f"{wires.address}:{NOBODY}", f"{wires.address}:{port}"
    return [
        ("netdev_add", {"type": "socket", "id": CLOCK, "udp": nobody, "localaddr": listens}),
        ("netdev_add", {"type": "hubport", "id": CLOCK_HUB, "hubid": HUB_NUMBER, "netdev": CLOCK}),
        held(HOLD, wires.first),
        _recorder(folder, RECORDERS[0], wires.first, "tx", kept),
        *_senders(wires, folder, kept),
        held(HOLD_TICK, CLOCK),
        _recorder(folder, TICKS, CLOCK, "tx", 64),
    ]


def _removals(additions: list[Command] | None = None) -> list[Command]:
    """Commands that remove these, the last first; without any, whatever may be there."""
    if additions is None:
        names = [CLOCK, CLOCK_HUB, HOLD, *RECORDERS, HOLD_TICK, TICKS]
    else:
        names = [given["id"] for _, given in additions]
    return [("netdev_del" if name in (CLOCK, CLOCK_HUB) else "object-del", {"id": name}) for name in reversed(names)]


def _unused_port(address: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
