# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT's packet counters at its first link, where traffic comes in, and its last, where it goes out."""

from __future__ import annotations

from fwlab.metrics.nodes import Nodes


def through(nodes: Nodes) -> tuple[int, int]:
    """Packets that the DUT received on its first link and sent on its last, since it booted."""
    counters = nodes.dut.counters()
    received = next(name for name in counters if name.endswith(".rx_packets"))
    sent_on = [name for name in counters if name.endswith(".tx_packets")][-1]
    return counters[received], counters[sent_on]
