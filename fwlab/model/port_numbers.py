# SPDX-License-Identifier: GPL-2.0-or-later
"""Each lab has its own ports on this host, and each checkout may shift them.

By $FWLAB_PORT_OFFSET, else by the number in .fwlab/ports, which fwlab/host/ports.py chooses.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from fwlab.model.errors import BadInput

VARIABLE = "FWLAB_PORT_OFFSET"
#: With these, each port of each lab is one that an ordinary user can have.
MIN_SHIFT, MAX_SHIFT = -20_000, 40_000


def port_number(base: int, per_lab: int, lab_number: int, offset: int, chosen: int) -> int:
    """A port by the fields of topology.yml. `chosen`: the checkout's shift. Raises BadInput."""
    wanted = wanted_shift()
    return base + per_lab * lab_number + offset + (chosen if wanted is None else wanted)


def lab_ports(ssh_base: int, link_base: int, per_lab: int, labs: Iterable[str]) -> list[int]:
    """All that the machines of these labs (labNN-name) may use, before they are shifted."""
    firsts = [base + per_lab * int(lab[3:5]) for base in (ssh_base, link_base) for lab in labs]
    return [first + place for first in firsts for place in range(per_lab)]


def wanted_shift() -> int | None:
    """What $FWLAB_PORT_OFFSET says; None if it is unset. Raises BadInput."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return None
    with contextlib.suppress(ValueError):
        if MIN_SHIFT <= (shift := int(wanted)) <= MAX_SHIFT:
            return shift
    raise BadInput(
        f"{VARIABLE}={wanted} is not a whole number from {MIN_SHIFT} to {MAX_SHIFT}", f"export {VARIABLE}=100"
    )


def chosen_shift(state: Path) -> int:
    """What the checkout with this folder of its state has chosen; 0 if nothing."""
    with contextlib.suppress(OSError, ValueError):
        return int((state / "ports").read_text())
    return 0
