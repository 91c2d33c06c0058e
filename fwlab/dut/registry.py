# SPDX-License-Identifier: GPL-2.0-or-later
"""The operating systems that a DUT can run."""

from __future__ import annotations

from fwlab.dut.protocol import DutSystem
from fwlab.model.registry import Registry, discover

DUTS: Registry[DutSystem] = discover("DUT", "fwlab.dut", "SYSTEM", "fwlab.duts", required=("connect",))
