# SPDX-License-Identifier: GPL-2.0-or-later
"""Filling the state table takes the generator's NIC and mutes the DUT. Both are restored afterwards."""

from __future__ import annotations

import pytest

from .conftest import LAB, TOPOLOGY, Checkout, document

pytestmark = pytest.mark.live

SENDS = TOPOLOGY.links["generator-dut"].ends["generator"].dev

#: State that must be restored, by node: addresses, routes, neighbours and MTU of the generator's NIC; the DUT's
#: queueing disciplines. The neighbours of the management network change by themselves.
SHOWN = {
    "generator": f"ip -br address show {SENDS}; ip route show dev {SENDS}; ip -6 route show dev {SENDS}; "
    f"(ip neigh show dev {SENDS}; ip -6 neigh show dev {SENDS}) | sort; cat /sys/class/net/{SENDS}/mtu",
    "dut": "sudo tc qdisc show | sort",
}
#: The case, and its number of flows, each of which the DUT tracks.
CASE, FLOWS = "timeouts-600", 65_000


def state(lab: Checkout) -> dict[str, str]:
    return {role: lab.run(role, command) for role, command in SHOWN.items()}


def received(lab: Checkout, link: str, role: str) -> int:
    """Packets received at this end of the link since the node booted."""
    device = TOPOLOGY.links[link].ends[role].dev
    return int(lab.run(role, f"cat /sys/class/net/{device}/statistics/rx_packets"))


@pytest.mark.thorough
def test_filling_is_muted_and_everything_is_restored(lab: Checkout) -> None:
    before = state(lab)
    taken, came = received(lab, "generator-dut", "dut"), received(lab, "dut-sink", "sink")
    case = document(lab.fwlab("run", "lab02-conntrack", CASE, "--machines", LAB, "--json"))["cases"][0]
    # Nearly all flows arrive. Management connections are tracked, too.
    assert case["median"] == pytest.approx(FLOWS, rel=0.005), case
    assert case["problems"] == []
    assert state(lab) == before
    taken, came = received(lab, "generator-dut", "dut") - taken, received(lab, "dut-sink", "sink") - came
    # The DUT forwarded only the packets that checked what it forwards.
    assert taken - came >= 0.99 * FLOWS, f"the DUT took {taken} packets in, and {came} reached the sink"
