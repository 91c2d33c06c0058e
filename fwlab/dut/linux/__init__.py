# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT: an agent that runs on it, and the client that the host talks through."""

from fwlab.dut.linux.client import LinuxDut, Loaded, LoadReport

__all__ = ["LinuxDut", "LoadReport", "Loaded"]
