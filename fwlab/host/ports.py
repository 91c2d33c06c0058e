# SPDX-License-Identifier: GPL-2.0-or-later
"""Which ports of this host a checkout's machines have.

Those of topology.yml, unless another user's machines or programs have one of them: then the checkout moves all of its
own, and keeps them as long as it has machines.
"""

import os
import random
import socket
from collections.abc import Sequence
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.model.errors import CannotMeasure
from fwlab.model.port_numbers import chosen_shift, wanted_shift

#: Shifts that are tried. All ports stay above the privileged and below Linux's ephemeral ones, which any program's
#: connection may take at any time.
FIRST, LAST, ATTEMPTS = -16_000, -4_000, 20


def settle_ports(root: Path, address: str, ports: Sequence[int]) -> int:
    """The shift of the checkout at `root`; another one is chosen if it has no machines and a port is taken.

    ports  all that its machines may use, before they are shifted
    Raises BadInput for a wrong $FWLAB_PORT_OFFSET, CannotMeasure if no range is free.
    """
    state = root / ".fwlab"
    shift = chosen_shift(state)
    if wanted_shift() is None and not _has_machines(root) and not _all_free(address, ports, shift):
        shift = free_shift(address, ports)
        write_atomically(state / "ports", f"{shift}\n", error=CannotMeasure)
    return shift


def free_shift(address: str, ports: Sequence[int]) -> int:
    """A shift with which none of these ports is taken. Raises CannotMeasure."""
    for _ in range(ATTEMPTS):
        shift = random.randrange(FIRST, LAST, len(ports))
        if _all_free(address, ports, shift):
            return shift
    raise CannotMeasure("no range of ports is free for the machines", "end what listens on many ports")


def _has_machines(root: Path) -> bool:
    vagrants = root / (os.environ.get("VAGRANT_DOTFILE_PATH") or ".vagrant")
    found = (vagrants.glob("machines/*/libvirt/id"), (root / ".fwlab").glob("*/machines.json"))
    return any(any(files) for files in found)


def _all_free(address: str, ports: Sequence[int], shift: int) -> bool:
    return all(_free(address, port + shift) for port in ports)


def _free(address: str, port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)  # as QEMU does
            try:
                probe.bind((address, port))
                if kind == socket.SOCK_STREAM:
                    probe.listen()
            except OSError:
                return False
    return True
