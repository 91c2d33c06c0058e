# SPDX-License-Identifier: GPL-2.0-or-later
"""The operating systems that a DUT can run."""

from fwlab.dut.system import DutSystem
from fwlab.model.errors import BadInput
from fwlab.model.registry import Registry, discover

DUTS: Registry[DutSystem] = discover("DUT", "fwlab.dut", "SYSTEM", "fwlab.duts", DutSystem, packages=True)


def dut_system(name: str) -> DutSystem:
    """The system that topology.yml names for the DUT. Raises BadInput if there is none of that name."""
    if name not in DUTS:
        raise BadInput(f"topology.yml: no DUT runs {name}", f"use one of: {' '.join(DUTS)}")
    return DUTS[name]
