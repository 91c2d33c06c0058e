# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet counters of the DUT's links."""

import contextlib
import glob
import os
import time

from fwlab.dut.linux.agent.kernel import read
from fwlab.dut.linux.agent.tasks import SOFTIRQ_THREADS
from fwlab.rulesets.kind import Refusal

_COUNTED = ("rx_packets", "tx_packets", "rx_dropped", "rx_bytes")


def pids_of(prefix: str) -> list[str]:
    """The process ids of tasks whose names begin so. Raises Refusal if there is none."""
    pids = []
    for path in glob.glob("/proc/[0-9]*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a task that has ended meanwhile
            if read(path).startswith(prefix):
                pids.append(path.split("/")[2])
    if not pids:
        raise Refusal(f"the DUT runs no {prefix}")
    return pids


class Counters:
    """Counters of these devices, read through files that stay open as long as the object lives."""

    _opened: tuple[int, ...] = ()

    def __init__(self, devices: list[str]) -> None:
        path = "/sys/class/net/{}/statistics/{}"
        self._softirqs = [os.open(f"/proc/{pid}/schedstat", os.O_RDONLY) for pid in pids_of(SOFTIRQ_THREADS)]
        self._opened = tuple(self._softirqs)
        self._files: dict[str, int] = {}
        for device, counter in ((device, counter) for device in devices for counter in _COUNTED):
            self._files[f"{device}.{counter}"] = os.open(path.format(device, counter), os.O_RDONLY)
            self._opened = (*self._softirqs, *self._files.values())

    def __del__(self) -> None:
        # A session makes one for each case and has hundreds of cases: it would run out of descriptors.
        for number in self._opened:
            os.close(number)

    def served_ns(self) -> list[int]:
        """How long each CPU's ksoftirqd has run. Under overload it serves all packets, and nothing else does."""
        return [int(os.pread(number, 64, 0).split()[0]) for number in self._softirqs]

    def read(self) -> dict[str, int]:
        """{"eth0.rx_packets": ...} since boot."""
        return {name: int(os.pread(number, 32, 0)) for name, number in self._files.items()}

    def read_at(self) -> tuple[int, dict[str, int]]:
        """(time in ns, counts), with no receive work in between.

        The CPU runs either this or the receive softirq. A reading that took longer than usual was interrupted, so it
        is repeated.
        """
        best: tuple[int, int, dict[str, int]] | None = None
        for _ in range(8):
            before = time.monotonic_ns()
            counts = self.read()
            took = time.monotonic_ns() - before
            if best is None or took < best[0]:
                best = (took, before, counts)
            elif took <= best[0] * 1.2:
                return before, counts
        assert best is not None  # noqa: S101 - the loop has run
        return best[1], best[2]

    def wait_for_packets(self, device: str, packets: int, patience_s: float) -> None:
        """Wait until this many packets have arrived. Raises Refusal after `patience_s` seconds."""
        start = time.monotonic()
        first = self.read()[device + ".rx_packets"]
        while self.read()[device + ".rx_packets"] < first + packets:
            if time.monotonic() - start > patience_s:
                raise Refusal(f"no packet arrived at {device} within {patience_s:g} s")
            time.sleep(0.005)

    def drain(self, device: str, quiet_s: float, patience_s: float) -> None:
        """Wait until the receive ring is empty: no packet for `quiet_s`, since a slow ruleset reads it in bursts."""
        name = device + ".rx_packets"
        deadline = time.monotonic() + patience_s
        last = None
        while (now := self.read()[name]) != last and time.monotonic() < deadline:
            last = now
            time.sleep(quiet_s)
