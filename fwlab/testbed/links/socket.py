# SPDX-License-Identifier: GPL-2.0-or-later
"""Socket links: frames travel in UDP datagrams between two QEMUs, on the loopback address."""

from collections.abc import Sequence

from fwlab.testbed.hardware import SocketNic
from fwlab.testbed.link_kinds import Requirement


class Socket(SocketNic):
    """Links as UDP sockets on the loopback address."""

    name = "socket"
    summary = "UDP between two QEMUs on the loopback address"
    netdevs = ("socket", "dgram")

    def requirements(self, kernels: Sequence[str]) -> tuple[Requirement, ...]:
        return ()


LINK = Socket()
