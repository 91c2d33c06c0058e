# SPDX-License-Identifier: GPL-2.0-or-later
"""A table is filled while the engine has the generator's NIC to itself and the DUT is muted: then all is as before."""

from __future__ import annotations

import pytest

from .conftest import LAB, Checkout, document

pytestmark = pytest.mark.live

#: What must come back, by node: addresses, routes, neighbours, MTU; the queues that packets leave by. Sorted, for the
#: NIC that comes back is the last of its machine.
SHOWN = {
    "generator": "(ip -br -4 address; ip -br -6 address; ip route; ip -6 route show dev eth0; ip neigh; "
    "cat /sys/class/net/eth0/mtu) | sort",
    "dut": "sudo tc qdisc show | sort",
}


def test_a_table_is_filled_and_all_is_put_back(lab: Checkout) -> None:
    before = {role: lab.run(role, command) for role, command in SHOWN.items()}
    case = document(lab.fwlab("run", "lab02-conntrack", "fill-default", "--machines", LAB, "--json"))["cases"][0]
    assert 8180 <= case["median"] <= 8192 and case["problems"] == [], case  # it is full, and entries come and go
    assert {role: lab.run(role, command) for role, command in SHOWN.items()} == before
