# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether machines fit into the memory that is left: of this host, and of the control groups of this process.

A container, a batch job or a user's slice may have less than /proc/meminfo says. In a control group that exceeds its
limit the kernel kills a process, and that would be a QEMU in the middle of a trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fwlab.model.errors import CannotMeasure

#: What the QEMU of a machine holds once the machine is up (MiB): after a boot 362 to 379 for machines with up to
#: MEASURED_MIB (results/lab03-ipset/2026-11-23-waits.json.gz), less after a restore. A larger machine is counted whole.
HELD_MIB, MEASURED_MIB = 400, 1024
#: An allowance for Vagrant, libvirt and the program that measures.
PROGRAMS_MIB = 300
#: The limits of control groups by version: the folder, the limit, what is used, and what of that can be reclaimed.
_GROUPS = {
    2: ("sys/fs/cgroup", "memory.max", "memory.current", ("inactive_file", "active_file")),
    1: (
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
}


@dataclass(frozen=True)
class Room:
    """Memory that new processes may take (MiB). `limit`: of the control group that leaves so little; None: the host."""

    mib: int
    limit: int | None = None

    def __str__(self) -> str:
        """For messages."""
        whose = "" if self.limit is None else f" of the {self.limit} that this container or job may use"
        return f"{self.mib} MiB{whose}"

    @property
    def hint(self) -> str:
        """What gives more."""
        if self.limit is None:
            return "`vagrant destroy` a lab that you do not need"
        return f"give the container or job more: `podman run --memory={self.limit + 1024}m …`"


def needed_mib(machines: Iterable[int]) -> int:
    """MiB for machines with this much memory (MiB), and for the programs that drive them."""
    return PROGRAMS_MIB + sum(HELD_MIB if memory <= MEASURED_MIB else memory for memory in machines)


def require_memory(machines: Iterable[int]) -> None:
    """Raise CannotMeasure if machines with this much memory (MiB) do not fit."""
    machines = list(machines)
    needed, room = needed_mib(machines), memory_left()
    if room.mib < needed:
        raise CannotMeasure(f"{len(machines)} machines need {needed} MiB of memory; {room} are available", room.hint)


def memory_left(root: Path = Path("/")) -> Room:
    """The least that the host and the control groups of this process leave. `root`: where /proc and /sys lie."""
    meminfo = (root / "proc/meminfo").read_text()
    found = re.search(r"^MemAvailable: +(\d+) kB", meminfo, re.MULTILINE)
    host = [Room(int(found[1]) >> 10)] if found else []
    return min([*host, *_groups(root)], key=lambda room: room.mib, default=Room(0))


def _groups(root: Path) -> Iterator[Room]:
    """What each control group of this process leaves that has a limit. Those around it limit it, too."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, limit, used, cached = _GROUPS[1 if controllers else 2]
        # In a container the path may be that on the host. The folder above all is then the container's group.
        folder = root / top / path.strip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(root / top) and ".." not in group.parts:
                yield from _left(group, limit, used, cached)


def _left(group: Path, limit: str, used: str, cached: tuple[str, ...]) -> Iterator[Room]:
    try:
        most, taken = (group / limit).read_text().strip(), int((group / used).read_text())
        stat = dict(line.split(" ", 1) for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no such group here, or no such controller
        return
    # Version 1 has a number larger than any memory for no limit.
    if most.isdigit() and int(most) < 1 << 60:
        left = int(most) - taken + sum(int(stat.get(name, 0)) for name in cached)
        yield Room(max(0, left) >> 20, int(most) >> 20)
