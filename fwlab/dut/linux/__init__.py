# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT that runs Linux: the agent that works on it, and the client that the host uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fwlab.dut.system import DutSystem

if TYPE_CHECKING:
    from fwlab.dut.linux.client import LinuxDut
    from fwlab.host.ssh import Ssh


class Linux(DutSystem):
    """Linux, as the registry of DUTs knows it."""

    name = "linux"
    forwarding = "net.ipv4.ip_forward"
    guest = "debian"
    shell = "bash -l"
    seed = ("user-data", "meta-data", "network-config")
    savable = True
    other_nics = True

    def connect(self, ssh: Ssh, devices: list[str]) -> LinuxDut:
        """See DutSystem."""
        from fwlab.dut.linux.client import LinuxDut

        return LinuxDut(ssh, devices)


SYSTEM: DutSystem = Linux()
