# SPDX-License-Identifier: GPL-2.0-or-later
"""What the agent counts on a Linux DUT: entries of rulesets, states and the memory of the connection table."""

import base64
import json
import zlib

from fwlab.dut.linux.agent import connection_table
from fwlab.dut.linux.client import packets_of_flows
from fwlab.model.trial import FiveTuple
from tests.fakes.fake_kernel import FakeKernel
from tests.unit.dut.test_agent_kinds import agent

SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <l> <b> <s> : slabdata
nf_conntrack_expect      0      0    208   19    1 : tunables    0    0    0 : slabdata      0      0      0
nf_conntrack       1000   1008    256   16    1 : tunables    0    0    0 : slabdata     63     63      0
"""


#: As nft 1.0.6 lists it. Nothing leads to the chain `unused` and the set `junk`; `own` is for the DUT's own packets.
NFT = json.dumps(
    {
        "nftables": [
            {"metainfo": {"version": "1.0.6"}},
            {"table": {"family": "ip", "name": "x"}},
            *(
                {
                    "set": {
                        "family": "ip",
                        "table": "x",
                        "name": name,
                        "elem": ["1.1.1.1", {"range": ["2.2.2.2", "3.3.3.3"]}],
                    }
                }
                for name in ("asked", "junk")
            ),
            {"map": {"family": "ip", "table": "x", "name": "m", "elem": [["1.1.1.1", {"jump": {"target": "called"}}]]}},
            {"chain": {"family": "ip", "table": "x", "name": "first", "hook": "prerouting"}},
            {"chain": {"family": "ip", "table": "x", "name": "own", "hook": "output"}},
            *(
                {"rule": {"family": "ip", "table": "x", "chain": chain, "expr": expr}}
                for chain, expr in (
                    ("first", [{"match": {"right": "@asked"}}, {"log": {"prefix": "@junk"}}, {"drop": None}]),
                    ("first", [{"match": {"right": {"set": ["1.1.1.1", "1.1.1.2", "1.1.1.3"]}}}, {"drop": None}]),
                    ("first", [{"vmap": {"data": "@m"}}]),
                    ("called", [{"drop": None}]),
                    ("own", [{"match": {"right": "@junk"}}]),
                    ("unused", [{"match": {"right": "@junk"}}]),
                )
            ),
        ]
    }
)
IPSET = """Name: a
References: 1
Number of entries: 3
Name: junk
References: 0
Number of entries: 265000
"""
IPTABLES = """*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:called - [0:0]
:unused - [0:0]
-A PREROUTING -p udp -m comment --comment "-j unused" -g called
-A OUTPUT -j DROP
-A called -s 1.1.1.1/32
-A called -s 1.1.1.2/32 -j DROP
-A unused -j DROP
COMMIT
*filter
:called - [0:0]
-A called -j DROP
COMMIT
"""


def test_entries_are_the_rules_and_addresses_that_a_packet_can_meet() -> None:
    kernel = FakeKernel()
    kernel.there = ["ip_set", "nf_tables", "ip_tables"]
    kernel.answers = {"ipset list -t": IPSET, "nft -j list ruleset": NFT, "iptables-legacy-save": IPTABLES}
    counted = agent(kernel).entries({})["entries"]
    rules, asked, unnamed, in_map = 4, 2, 3, 1
    expected = {"ipset": 3, "nft": rules + asked + unnamed + in_map, "iptables": 3}
    assert {kind: count for kind, count in counted.items() if count} == expected


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


#: /proc/net/nf_conntrack of Linux 6.1, with accounting.
TABLE = """\
ipv4     2 udp      17 29 src=198.18.64.1 dst=198.19.10.80 sport=2000 dport=443 packets=3 bytes=138 [UNREPLIED] \
src=198.19.10.80 dst=198.18.64.1 sport=443 dport=2000 packets=0 bytes=0 mark=0 zone=0 use=2
ipv4     2 tcp      6 431999 ESTABLISHED src=198.18.64.2 dst=198.19.10.80 sport=2001 dport=443 packets=2 bytes=92 \
src=198.19.10.80 dst=198.18.64.2 sport=443 dport=2001 packets=1 bytes=60 [ASSURED] mark=0 zone=0 use=2
ipv4     2 icmp     1 29 src=198.18.64.1 dst=198.19.10.80 type=8 code=0 id=1 packets=1 bytes=84 src=198.19.10.80 \
dst=198.18.64.1 type=0 code=0 id=1 packets=1 bytes=84 mark=0 zone=0 use=2
"""


def test_packets_of_each_flow() -> None:
    kernel = FakeKernel()
    assert (agent(kernel).count_flows({}), agent(kernel).flows({})) == ({"emptied": False}, answered(""))
    kernel.there, kernel.files["/proc/net/nf_conntrack"] = ["nf_conntrack"], TABLE
    assert agent(kernel).flows({}) == answered(TABLE)
    assert connection_table.count_packets(kernel)
    assert kernel.written["/proc/sys/net/netfilter/nf_conntrack_acct"] == "1"
    assert packets_of_flows(TABLE) == {
        FiveTuple(17, "198.18.64.1", 2000, "198.19.10.80", 443): 3,
        FiveTuple(17, "198.19.10.80", 443, "198.18.64.1", 2000): 0,
        FiveTuple(6, "198.18.64.2", 2001, "198.19.10.80", 443): 2,
        FiveTuple(6, "198.19.10.80", 443, "198.18.64.2", 2001): 1,
    }


def answered(table: str) -> dict[str, str]:
    return {"packed": base64.b64encode(zlib.compress(table.encode(), 6)).decode()}
