# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts the instructions that the DUT's CPUs retire, by their own counters (perf_event_open(2)).

Under KVM a guest has such counters where the host gives it a virtual PMU. An emulated CPU has none: there the clock
itself counts instructions.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator

#: x86-64's number of perf_event_open(2).
PERF_EVENT_OPEN = 298
TYPE_HARDWARE, COUNT_INSTRUCTIONS = 0, 1
#: struct perf_event_attr as of Linux 6.1: type, size, config, sample_period, sample_type, read_format, flags, the rest.
ATTRIBUTES, SIZE = struct.Struct("<IIQQQQQ88x"), 136
#: read_format: for how long the event was wanted, and for how long it really counted.
TIMES = 1 | 2
#: flags: always on its counter, never in turns with other events.
PINNED = 1 << 2
CLOSE_ON_EXEC = 8
READING = struct.Struct("<QQQ")


class Retired:
    """Counters of all CPUs. Without any, `read` returns None."""

    def __init__(self, files: list[int]) -> None:
        self._files = files

    def read(self) -> int | None:
        """Instructions retired on all CPUs since the counters were opened, kernel and programs together.

        None if there is no counter, or if one of them did not count all the time.
        """
        if not self._files:
            return None
        total = 0
        for number in self._files:
            found = os.read(number, READING.size)
            if len(found) < READING.size:  # a pinned event that found no counter reads as the end of a file
                return None
            count, wanted_ns, counted_ns = READING.unpack(found)
            if counted_ns < wanted_ns:
                return None
            total += count
        return total


@contextlib.contextmanager
def retired() -> Iterator[Retired]:
    """Counters of all CPUs while the context lasts; none if a CPU has none."""
    files: list[int] = []
    try:
        with contextlib.suppress(OSError):
            files.extend(open_counter(cpu) for cpu in range(os.cpu_count() or 1))
        yield Retired(files if len(files) == (os.cpu_count() or 1) else [])
    finally:
        for number in files:
            os.close(number)


def open_counter(cpu: int) -> int:
    """A file descriptor of one CPU's counter. Raises OSError if it has none."""
    attributes = ATTRIBUTES.pack(TYPE_HARDWARE, SIZE, COUNT_INSTRUCTIONS, 0, 0, TIMES, PINNED)
    libc = ctypes.CDLL(None, use_errno=True)
    number: int = libc.syscall(PERF_EVENT_OPEN, attributes, -1, cpu, -1, CLOSE_ON_EXEC)
    if number < 0:
        raise OSError(ctypes.get_errno(), f"no counter of instructions on CPU {cpu}")
    return number
