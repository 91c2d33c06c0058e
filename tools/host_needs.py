# SPDX-License-Identifier: GPL-2.0-or-later
"""What the README says a host must have: the limits that the programs themselves compare the host with."""

import textwrap

from fwlab.checkout.project import find_project, load_topology
from fwlab.host.memory import needed_mib
from fwlab.host.published_file import NEEDED_BYTES
from fwlab.images.disk_use import LIMIT
from tools.markdown import block


def memory_and_disk() -> str:
    """Two items of a list."""
    memory = needed_mib(node.memory_mib for node in load_topology(find_project()).nodes.values())
    disk = (
        f"{NEEDED_BYTES >> 30} GiB of free disk while boxes are built, or `packer/build` refuses. Afterwards `fwlab "
        "doctor` says what is taken, and names what makes room if the cache or the machines have more than "
        f"{LIMIT >> 30} GiB"
    )
    items = (f"{memory} MiB of free memory for the three machines, or `vagrant up` refuses", disk)
    return block("\n".join(textwrap.fill(f"- {item}", 120, subsequent_indent="  ") for item in items))
