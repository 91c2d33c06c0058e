# SPDX-License-Identifier: GPL-2.0-or-later
"""A blackhole queue on a device: packets pass all rules and are then dropped.

To send them on would cost this machine and the next one more of the host than to track them, and a full ring tracks
nothing.
"""

import json
from typing import Any

from fwlab.dut.linux.agent.kernel import Kernel


def add(kernel: Kernel, device: str) -> bool:
    """False if a ruleset has a queue there, which is left alone."""
    if _root(kernel, device).get("handle", "0:") != "0:":  # the kernel's default queue has no handle
        return False
    return not kernel.run("tc", "qdisc", "replace", "dev", device, "root", "blackhole").returncode


def remove(kernel: Kernel, device: str) -> None:
    """Restore the kernel's default queue."""
    kernel.run("tc", "qdisc", "del", "dev", device, "root")


def dropped(kernel: Kernel, devices: list[str]) -> int:
    """Packets that the kernel's default queues on these devices have dropped; a ruleset's own queue counts none."""
    queues = (
        queue
        for queue in _queues(kernel, "-s", "-j", "qdisc", "show")
        if queue.get("root") and queue.get("dev") in devices
    )
    return sum(int(queue.get("drops", 0)) for queue in queues if queue.get("handle", "0:") == "0:")


def _root(kernel: Kernel, device: str) -> dict[str, Any]:
    """The queue that packets leave by, as tc shows it; empty if there is none."""
    return next((queue for queue in _queues(kernel, "-j", "qdisc", "show", "dev", device) if queue.get("root")), {})


def _queues(kernel: Kernel, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(kernel.run("tc", *words).stdout or "[]"))
