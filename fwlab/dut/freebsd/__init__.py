# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT that runs FreeBSD with pf: the agent that works on it, in Lua, the client that the host uses, and its image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fwlab.dut.system import UNINDEXED, DutSystem

if TYPE_CHECKING:
    from fwlab.dut.freebsd.client import FreeBsdDut
    from fwlab.host.ssh import Ssh


class FreeBsd(DutSystem):
    """FreeBSD, as the registry of DUTs knows it."""

    name = "freebsd"
    forwarding = "net.inet.ip.forwarding"
    guest = "freebsd"
    shell = "/bin/sh"
    # The box's own rc.d script (provision/dut-freebsd/60-seed.sh) reads its seed at every boot; nuageinit would read
    # one at the first boot only, and knows neither static routes nor static neighbours.
    seed = ("rc.conf", "hosts", "authorized_keys")
    # With event indexes, vtnet can miss the notification for a full receive ring while its CPU is throttled, and never
    # receives a packet again.
    arguments = UNINDEXED
    image = "fwlab.dut.freebsd.image"

    def connect(self, ssh: Ssh, devices: list[str]) -> FreeBsdDut:
        """See DutSystem."""
        from fwlab.dut.freebsd.client import FreeBsdDut

        return FreeBsdDut(ssh, devices)


SYSTEM: DutSystem = FreeBsd()
