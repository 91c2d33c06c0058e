# SPDX-License-Identifier: GPL-2.0-or-later
"""A table is filled while the engine has the generator's NIC to itself and the DUT is muted: then all is as before."""

from __future__ import annotations

import pytest

from .conftest import LAB, TOPOLOGY, Checkout, document

pytestmark = pytest.mark.live

SENDS = TOPOLOGY.links["generator-dut"].ends["generator"].dev

#: What must come back, by node: addresses, routes and neighbours of the NIC that was taken, and its MTU; the queues
#: that packets leave by. (What a node knows of its management's neighbour comes and goes by itself.)
SHOWN = {
    "generator": f"ip -br address show {SENDS}; ip route show dev {SENDS}; ip -6 route show dev {SENDS}; "
    f"(ip neigh show dev {SENDS}; ip -6 neigh show dev {SENDS}) | sort; cat /sys/class/net/{SENDS}/mtu",
    "dut": "sudo tc qdisc show | sort",
}
#: So many flows are played, each of which the DUT tracks and would send on.
CASE, FLOWS = "timeouts-600", 65_000


def state(lab: Checkout) -> dict[str, str]:
    return {role: lab.run(role, command) for role, command in SHOWN.items()}


def received(lab: Checkout, link: str, role: str) -> int:
    """Packets that this end of the link has taken in since the node booted."""
    device = TOPOLOGY.links[link].ends[role].dev
    return int(lab.run(role, f"cat /sys/class/net/{device}/statistics/rx_packets"))


def test_a_table_is_filled_in_silence_and_all_is_put_back(lab: Checkout) -> None:
    before = state(lab)
    taken, came = received(lab, "generator-dut", "dut"), received(lab, "dut-sink", "sink")
    case = document(lab.fwlab("run", "lab02-conntrack", CASE, "--machines", LAB, "--json"))["cases"][0]
    # Nearly all came in; the management's connections are tracked, too.
    assert case["median"] == pytest.approx(FLOWS, rel=0.005), case
    assert case["problems"] == []
    assert state(lab) == before
    taken, came = received(lab, "generator-dut", "dut") - taken, received(lab, "dut-sink", "sink") - came
    # What the DUT was watched for before, to see what it carries, it did send on.
    assert taken - came >= 0.99 * FLOWS, f"the DUT took {taken} packets in, and {came} reached the sink"
