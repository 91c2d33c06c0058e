# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT that runs FreeBSD with pf: the agent that works on it, in Lua, and the client that the host uses."""

from fwlab.dut.freebsd.client import FreeBsdDut, FreeBsdSystem
from fwlab.dut.protocol import DutSystem

__all__ = ["SYSTEM", "FreeBsdDut"]

SYSTEM: DutSystem = FreeBsdSystem()
