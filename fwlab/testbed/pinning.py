# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPUs of the host that each node's virtual CPUs may run on."""

from pathlib import Path

from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import ROLES, Topology
from fwlab.testbed.qemu_process import qemu_of, vcpu_threads

_ALLOWED = "Cpus_allowed_list:"


def pinning(topology: Topology, lab_number: int) -> dict[str, str]:
    """By node, the CPUs as the kernel lists them; one list per virtual CPU, joined by "+" if they differ.

    A node whose QEMU cannot be seen, such as another user's, is left out.
    """
    found = {}
    for role in ROLES:
        try:
            pid = qemu_of(topology.ports.address, topology.ssh_port(lab_number, role))
            lists = [_allowed(Path(f"/proc/{pid}/task/{thread}/status")) for thread in vcpu_threads(pid)]
        except (CannotMeasure, OSError):
            continue
        found[role] = "+".join(dict.fromkeys(one for one in lists if one))
    return {role: cpus for role, cpus in found.items() if cpus}


def _allowed(status: Path) -> str:
    lines = status.read_text().splitlines()
    return next((line.split()[1] for line in lines if line.startswith(_ALLOWED)), "")
