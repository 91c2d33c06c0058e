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


def dropped(kernel: Kernel, device: str) -> int:
    """Packets that the kernel's default queue on this device has dropped; 0 if a ruleset has a queue there."""
    queue = _root(kernel, device, "-s")
    return int(queue.get("drops", 0)) if queue.get("handle", "0:") == "0:" else 0


def _root(kernel: Kernel, device: str, *more: str) -> dict[str, Any]:
    """The queue that packets leave by, as tc shows it; empty if there is none."""
    shown = kernel.run("tc", *more, "-j", "qdisc", "show", "dev", device).stdout
    queues: list[dict[str, Any]] = json.loads(shown or "[]")
    return next((queue for queue in queues if queue.get("root")), {})
