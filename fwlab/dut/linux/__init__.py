# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT that runs Linux: the agent that works on it, and the client that the host uses."""

from fwlab.dut.linux.client import LinuxDut, LinuxSystem
from fwlab.dut.protocol import DutSystem

__all__ = ["SYSTEM", "LinuxDut"]

SYSTEM: DutSystem = LinuxSystem()
