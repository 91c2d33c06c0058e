# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the DUT's QEMU on this host, the thread of its virtual CPU, and libvirt's name for it."""

import contextlib
from pathlib import Path

import psutil

from fwlab.model.errors import CannotMeasure


def qemu_of(ssh_address: str, ssh_port: int) -> int:
    """Process id of the QEMU that forwards this SSH port. Raises CannotMeasure if there is none."""
    forwarded = f"{ssh_address}:{ssh_port}-"
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or [""]
        if "qemu" in words[0] and any(forwarded in word for word in words) and _in_our_network(process.pid):
            return process.pid
    raise CannotMeasure(f"no QEMU forwards {ssh_address}:{ssh_port}", "vagrant up LAB")


def _in_our_network(pid: int) -> bool:
    """Whether its loopback address is ours: the QEMU of a container on this host may forward the same port."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino == Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return True  # another user's process: its namespace cannot be read


def vcpu_thread(pid: int) -> int:
    """Thread id of the only virtual CPU. Raises CannotMeasure if none is named."""
    threads = vcpu_threads(pid)
    if not threads:
        raise CannotMeasure(f"QEMU {pid} names no CPU thread", "start it with debug-threads=on, as libvirt does")
    return threads[0]


def vcpu_threads(pid: int) -> list[int]:
    """Thread ids of the virtual CPUs: named "CPU 0/TCG", "CPU 0/KVM" or, with -icount, "ALL CPUs/TCG"."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith(("CPU ", "ALL CPUs")):
                found.append(int(task.name))
    return sorted(found)


def arguments_of(pid: int) -> list[str]:
    """The command line of this QEMU. Raises CannotMeasure if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError as error:
        raise CannotMeasure(f"QEMU {pid} has ended", "vagrant up LAB") from error


def domain_of(pid: int) -> str:
    """libvirt's name for the machine that this QEMU runs, from its command line (-name guest=...)."""
    words = arguments_of(pid)
    named = words[words.index("-name") + 1] if "-name" in words else ""
    found = {key: value for key, _, value in (part.partition("=") for part in named.split(","))}.get("guest")
    if not found:
        raise CannotMeasure(f"QEMU {pid} was not started by libvirt", "vagrant up LAB")
    return found
