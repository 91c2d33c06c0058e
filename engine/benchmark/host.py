# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's side of the benchmark: counts frames at the far end of the link, and pins processes to CPUs."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
SO_ATTACH_FILTER = 26
#: Priority of the measured processes over other work on the host (root only).
NICE = -20
#: The lock is released after the first round that ends later than this (s).
HOLD_S = 270
#: Host CPUs: of QEMU's main loop, which carries the frames, and of everything else.
CARRIER, OTHER = 0, 1


class Lock:
    """A lock that measurements on this host share. It is kept over several rounds, for at least HOLD_S if needed."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a") if path else None
        self._since: float | None = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock for one round."""
        if self._file and self._since is None:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._since = time.monotonic()
        try:
            yield
        finally:
            if self._file and self._since is not None and time.monotonic() > self._since + HOLD_S:
                fcntl.flock(self._file, fcntl.LOCK_UN)
                self._since = None


class FarEnd:
    """A UDP port on loopback. Its socket filter drops every datagram: the kernel counts it, and no reader uses CPU."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        refuse_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # return 0
        program = struct.pack("HP", 1, ctypes.addressof(refuse_all))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        self._socket.bind((LOOPBACK, 0))
        self._inode = str(os.fstat(self._socket.fileno()).st_ino)
        self.port: int = self._socket.getsockname()[1]

    def count(self) -> int:
        """Datagrams that have arrived."""
        rows = (line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:])
        return next(int(row[12]) for row in rows if row[9] == self._inode)

    def await_traffic(self, failed: Callable[[], str | None], timeout_s: float) -> None:
        """Wait until frames arrive. Raises RuntimeError after `timeout_s`, or with the message of `failed`."""
        first, end = self.count(), time.monotonic() + timeout_s
        while self.count() < first + 100:
            message = failed()
            if message is not None or time.monotonic() > end:
                raise RuntimeError(message or f"no traffic within {timeout_s:g} s")
            time.sleep(0.01)

    def rate(self, seconds: float, carrier: int | None = None) -> dict[str, Any]:
        """Frames per second that arrive, and meanwhile the CPU usage of the first thread of process `carrier`."""
        count, busy, start = self.count(), cpu_seconds(carrier), time.monotonic()
        time.sleep(seconds)
        arrived, busy, took = self.count() - count, cpu_seconds(carrier) - busy, time.monotonic() - start
        found = {"arrived": arrived, "seconds": round(took, 3), "pps": round(arrived / took)}
        if carrier is not None:
            found["carrier_busy"] = round(busy / took, 3)
        return found | {"loadavg": round(os.getloadavg()[0], 2)}


def free_port() -> int:
    """A UDP port on loopback that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def cpu_seconds(pid: int | None) -> float:
    """CPU time of a process's first thread. In QEMU it carries frames from the ring to the socket."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pin_process(pid: int) -> str:
    """Pin QEMU's main loop and its virtual CPU to different host CPUs, and raise their priority.

    Otherwise the host's scheduler often runs both on one CPU. Returns a description of what was done.
    """
    done = []
    if (os.cpu_count() or 1) > 1:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                virtual = "CPU " in (task / "comm").read_text()
                os.sched_setaffinity(int(task.name), {OTHER if virtual else CARRIER})
        done.append("the carrying thread and the virtual CPU on a host CPU each")
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), NICE)
        # With autogroup scheduling, a nice value counts only within its own session.
        group = Path(f"/proc/{pid}/autogroup")
        if group.exists():
            group.write_text(str(NICE))
        done.append(f"nice {NICE}")
    return ", ".join(done) or "as the host schedules it"


def describe() -> dict[str, Any]:
    """The host: CPU, number of CPUs, kernel and QEMU."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    shown = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False).stdout
    return {
        "cpu": models[0].partition(":")[2].strip() if models else "unknown",
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "qemu": shown.partition("\n")[0],
    }
