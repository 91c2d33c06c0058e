# SPDX-License-Identifier: GPL-2.0-or-later
"""What the agent counts on a Linux DUT: entries of rulesets, states and the memory of the connection table."""

from __future__ import annotations

from fwlab.dut.linux.agent import connection_table

from .fake_kernel import FakeKernel
from .test_agent_kinds import agent

SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <l> <b> <s> : slabdata
nf_conntrack_expect      0      0    208   19    1 : tunables    0    0    0 : slabdata      0      0      0
nf_conntrack       1000   1008    256   16    1 : tunables    0    0    0 : slabdata     63     63      0
"""


def test_entries_are_rules_and_addresses() -> None:
    kernel = FakeKernel()
    kernel.there = ["ip_set", "nf_tables", "ip_tables"]
    kernel.answers = {
        "ipset list -t": "Name: a\nNumber of entries: 3\nName: b\nNumber of entries: 4\n",
        "nft -j list ruleset": '{"nftables": [{"rule": {}}, {"set": {"elem": [1, 2]}}, {"map": {}}, {"table": {}}]}',
        "iptables-legacy-save": "*raw\n:OUTPUT ACCEPT\n-A OUTPUT -j DROP\nCOMMIT\n",
    }
    counted = agent(kernel).entries({})["entries"]
    assert {kind: count for kind, count in counted.items() if count} == {"ipset": 7, "nft": 3, "iptables": 1}


def test_memory_of_the_connection_table() -> None:
    assert connection_table.slabs(SLABINFO, "nf_conntrack") == (256, 63 * 4096)
    assert connection_table.slabs(SLABINFO, "nf_conn") == (0, 0)


def test_a_dut_that_tracks_nothing_has_no_states() -> None:
    kernel = FakeKernel()
    kernel.there = ["x_tables"]
    assert set(agent(kernel).states({})["states"].values()) == {0}


def test_buckets_take_whole_pages() -> None:
    kernel = FakeKernel()
    kernel.there = ["nf_conntrack"]
    for name, number in (("count", "7"), ("max", "1000"), ("buckets", "1000")):
        kernel.files[f"/proc/sys/net/netfilter/nf_conntrack_{name}"] = number
    kernel.files["/proc/slabinfo"] = SLABINFO
    found = connection_table.states(kernel)
    assert (found["held"], found["most"], found["buckets"], found["bucket_bytes"]) == (7, 1000, 1000, 8192)
