# SPDX-License-Identifier: GPL-2.0-or-later
"""The grader notices when the kernel does not hold the contents of a ruleset file."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fwlab.grading.grader import Inconclusive, absent_from, missing
from fwlab.rulesets.kinds import nft
from fwlab.rulesets.kinds.nft import LIST as NFT
from fwlab.rulesets.kinds.routes import LISTED as ROUTES
from fwlab.rulesets.registry import KINDS
from fwlab.rulesets.render import ruleset_file


class FakeHost:
    """A DUT whose tools give predefined answers; any other call fails."""

    def __init__(self, answers: dict[str, str], rc: int = 0) -> None:
        self.answers, self.rc = answers, rc

    def run(self, command: str, *arguments: str) -> SimpleNamespace:
        answer = self.answers[command % arguments if arguments else command]
        return SimpleNamespace(rc=self.rc, stdout=answer, stderr="no such tool\n" if self.rc else "")


def tc(ingress: str) -> dict[str, str]:
    places = {"ingress": ingress, "egress": "", "root": ""}
    return {f"tc filter show dev eth0 {place}": listed for place, listed in places.items()}


def pf(status: str = "Enabled", rules: str = "", tables: str = "") -> dict[str, str]:
    info = f"Status: {status} for 0 days 00:00:07             Debug: Urgent\n"
    return {"pfctl -s info": info, "pfctl -s rules": rules, "pfctl -s Tables": tables}


PF_NONE = "set ruleset-optimization none\n"
XDP = """Filtered ports:
  53                                       dst,udp          0
Filtered IP addresses:
  2001:2::1                                src              0
Loaded on interfaces:
  eth0 (native mode)                       tcp,udp,ipv6,ipv4,ethernet,allow
"""
ONE_TABLE = "table eth1 list dport drop\n53\n"
LOADER = """CURRENT XDP PROGRAM STATUS:

Interface        Prio  Program name      Mode     ID   Tag               Chain actions
--------------------------------------------------------------------------------------
lo                     <No XDP program loaded!>
eth0                   <No XDP program loaded!>
eth1                   fwlab_ed7e592c    native   12   4c71709884530fb5
"""
QUEUE = "/sys/class/net/eth0/queues/rx-0"
#: Output of nft and ethtool on a DUT.
ONE_RULE = "table netdev t {\n  chain c {\n    type filter hook ingress device eth0 priority 0;\n    drop\n  }\n}\n"
LISTED = """table netdev t { # handle 1
\tchain c { # handle 2
\t\ttype filter hook ingress device "eth0" priority filter; policy accept;
\t\tdrop # handle 4
\t}
}
"""
FEATURES = """Features for eth0:
rx-checksumming: on [fixed]
generic-receive-offload: off
tx-udp-segmentation: on [requested off]
"""
RINGS = """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t1024
Current hardware settings:
RX:\t\t128
TX:\t\t256
"""
CHANNELS = "Channel parameters for eth0:\nPre-set maximums:\nCombined:\t2\nCurrent hardware settings:\nCombined:\t1\n"
NFT_SAVE = "iptables-nft-save | grep -c ^-A || true"
LEGACY, LEGACY6 = (f"{name}-legacy-save | grep -c ^-A || true" for name in ("iptables", "ip6tables"))


BUCKETS = "net.netfilter.nf_conntrack_buckets"


@pytest.mark.parametrize(
    ("name", "text", "answers", "absent"),
    [
        ("a.ipset", "create one hash:ip\ncreate two hash:ip\n", {"ipset list -n": "one\ntwo\n"}, None),
        ("a.ipset", "create one hash:ip\ncreate two hash:ip\n", {"ipset list -n": "one\n"}, "sets two"),
        ("a.iptables", "*raw\n-A A -j X\n-I A -j Y\nCOMMIT\n", {LEGACY: "2"}, None),
        ("a.iptables", "*raw\n-A A -j X\n-I A -j Y\nCOMMIT\n", {LEGACY: "1"}, "1 of 2 rules"),
        ("a.ip6tables", "*raw\n-A A -j X\nCOMMIT\n", {LEGACY6: "0"}, "1 of 1 rules"),
        ("a.iptables", "*raw\n-A A -j X\n-A A -j Y\n-D A 1\nCOMMIT\n", {LEGACY: "1"}, None),
        ("a.iptables", "*raw\n-A A -j X\n-A A -j Y\n-D A 1\nCOMMIT\n", {LEGACY: "0"}, "1 of 1 rules"),
        ("a.iptables", "*raw\n-A A -j X\n-F A\nCOMMIT\n", {LEGACY: "0"}, None),
        ("a.iptables", "*raw\n[0:0] -A A -j X\nCOMMIT\n", {LEGACY: "0"}, "1 of 1 rules"),
        ("a.iptables-nft", "*raw\n-A A -j X\nCOMMIT\n", {NFT_SAVE: "0"}, "1 of 1 rules"),
        ("a.ipset", "create one hash:ip\nrename one two\ndestroy x\n", {"ipset list -n": "two\n"}, None),
        ("a.nft", "table ip t {\n}\n", {NFT: ""}, "tables ip t"),
        ("a.nft", "add table t; add table inet u\n", {NFT: "table ip t { # handle 1\n}\n"}, "tables inet u"),
        ("a.nft", ONE_RULE, {NFT: LISTED}, None),
        ("a.nft", ONE_RULE, {NFT: LISTED.replace("\t\tdrop # handle 4\n", "")}, "1 of 1 rules of table netdev t"),
        ("a.nft", ONE_RULE, {NFT: LISTED.replace("netdev t", "netdev u")}, "tables netdev t"),
        ("a.routes", "route add 198.19.1.0/24 dev eth1\n# x\n", {ROUTES: "1"}, None),
        (
            "a.routes",
            "route add blackhole 198.19.1.0/24\nroute replace 198.19.1.0/24\n-6 route add 2001:2::/64 dev eth1\n",
            {ROUTES: "1"},
            "1 of 2 routes",
        ),
        ("a.tc", "qdisc add dev eth0 clsact\nfilter add dev eth0 ingress matchall\n", tc("filter x"), None),
        ("a.tc", "qdisc add dev eth0 clsact\nfilter add dev eth0 ingress matchall\n", tc(""), "filters on eth0"),
        ("a.tc", "qdisc replace dev eth1 root noqueue\n", {}, None),
        ("a.xdp-filter", "load eth0 -m native\nip 2001:2:0::1 -m src\nport 53\n", {"xdp-filter status": XDP}, None),
        (
            "a.xdp-filter",
            "load eth1\nether AA:00:00:00:00:01\n",
            {"xdp-filter status": XDP},
            "aa:00:00:00:00:01, eth1",
        ),
        ("a.xdp-table", ONE_TABLE, {"xdp-loader status": LOADER}, None),
        ("a.xdp-table", ONE_TABLE.replace("53", "54"), {"xdp-loader status": LOADER}, "the program of eth1"),
        (
            "a.xdp-table",
            f"{ONE_TABLE}table eth0 lpm saddr drop\n198.18.1.1\n",
            {"xdp-loader status": LOADER},
            "the program of eth0",
        ),
        ("a.sysctl", "; x=1\n- net.core.a = 1 2\n", {"sysctl -n net.core.a": "1\t2\n"}, None),
        ("a.sysctl", "net.core.a=1\n", {"sysctl -n net.core.a": "2\n"}, "net.core.a = 1 (it is 2)"),
        ("a.sysctl", "net.core.a=1\n", {"sysctl -n net.core.a": ""}, "net.core.a = 1 (it is unknown)"),
        ("a.sysctl", f"{BUCKETS} = 132000\n", {f"sysctl -n {BUCKETS}": "132096\n"}, None),
        ("a.sysctl", f"{BUCKETS} = 1024\n", {f"sysctl -n {BUCKETS}": "1536\n"}, f"{BUCKETS} = 1024 (it is 1536)"),
        ("a.sysctl", f"{BUCKETS} = 1024\n", {f"sysctl -n {BUCKETS}": "512\n"}, f"{BUCKETS} = 1024 (it is 512)"),
        ("a.ethtool", "eth0 -K gro off\n", {"ethtool -k eth0": FEATURES}, None),
        ("a.ethtool", "eth0 -K gro on\n", {"ethtool -k eth0": FEATURES}, "eth0 -K gro on (it is off)"),
        ("a.ethtool", "eth0 -K gro on\neth0 -K gro off\n", {"ethtool -k eth0": FEATURES}, None),
        ("a.ethtool", "eth0 -K tx-udp-segmentation on\n", {"ethtool -k eth0": FEATURES}, None),
        ("a.ethtool", "eth0 -K tx-udp-segmentation off\n", {"ethtool -k eth0": FEATURES}, None),
        ("a.ethtool", "eth0 -G rx 512 tx 256\n", {"ethtool -g eth0": RINGS}, "eth0 -G rx 512 (it is 128)"),
        ("a.ethtool", "eth0 -L combined 1\n", {"ethtool -l eth0": CHANNELS}, None),
        ("a.ethtool", "eth0 -C rx-usecs 9\n", {"ethtool -c eth0": "rx-usecs: n/a\n"}, "eth0 -C rx-usecs 9 (it is n/a)"),
        ("a.sysctl", "-net.core.a=1\n", {"sysctl -n net.core.a": ""}, None),
        ("a.rps", "eth0 rx-0 rps_cpus 1\neth0 rx-0 rps_cpus f  # all\n", {f"cat {QUEUE}/rps_cpus": "0000000f\n"}, None),
        ("a.rps", "eth0 rx-0 rps_cpus 1\n", {f"cat {QUEUE}/rps_cpus": "0\n"}, f"{QUEUE}/rps_cpus = 1 (it is 0)"),
        ("a.rps", "eth0 rx-0 rps_flow_cnt 5000\n", {f"cat {QUEUE}/rps_flow_cnt": "8192\n"}, None),
        (
            "a.rps",
            "eth0 rx-0 rps_flow_cnt 4096\n",
            {f"cat {QUEUE}/rps_flow_cnt": ""},
            f"{QUEUE}/rps_flow_cnt = 4096 (it is unknown)",
        ),
        ("pf.conf", "block all\n", pf("Disabled"), "any of it: pf is off"),
        ("pf.conf", "block all\n", pf(rules="block drop all\n"), None),
        ("pf.conf", "block all\npass\n", pf(), "2 of 2 rules"),
        ("pf.conf", "block all\npass\n", pf(rules="block drop all\n"), None),
        ("pf.conf", f"{PF_NONE}block all\npass\n", pf(rules="block drop all\n"), "1 of 2 rules"),
        ("pf.conf", "table <a> persist { 1.1.1.1 }\ntable <b> { 1.1.1.2 }\n", pf(tables="a\n"), None),
        ("pf.conf", "t = bad\ntable <a> persist\ntable <$t> persist\n", pf(tables="a\n"), "tables bad"),
        ("pf.conf", "set skip on lo0\n# block all\n", pf(), None),
        ("a.sysctl", "-net.core.a=1\n", {"sysctl -n net.core.a": "2\n"}, "net.core.a = 1 (it is 2)"),
        ("a.sysctl", "net.core.a = 00\n", {"sysctl -n net.core.a": "0\n"}, None),
        ("a.sysctl", "net.core.a = 0x10 010\n", {"sysctl -n net.core.a": "16\t8\n"}, None),
        ("a.sysctl", "net.core.a = 010\n", {"sysctl -n net.core.a": "10\n"}, "net.core.a = 010 (it is 10)"),
        ("a.sysctl", "net.core.a = reno\n", {"sysctl -n net.core.a": "cubic\n"}, "net.core.a = reno (it is cubic)"),
    ],
)
def test_missing_items_are_named(name: str, text: str, answers: dict[str, str], absent: str | None) -> None:
    assert missing(FakeHost(answers), ruleset_file(name, text)) == absent


class LostHost:
    def run(self, *_: str) -> None:
        raise RuntimeError("CommandResult(exit_status=255)")


#: A file of every kind.
EVERY_KIND = {
    "a.ipset": "create one hash:ip\n",
    "a.iptables": "*raw\n-A A -j X\nCOMMIT\n",
    "a.ip6tables": "*raw\n-A A -j X\nCOMMIT\n",
    "a.iptables-nft": "*raw\n-A A -j X\nCOMMIT\n",
    "a.nft": ONE_RULE,
    "a.routes": "route add 198.19.1.0/24 dev eth1\n",
    "a.tc": "filter add dev eth0 ingress matchall\n",
    "a.xdp-filter": "load eth0\n",
    "a.xdp-table": "table eth0 hash saddr drop\n198.18.1.1\n",
    "a.sysctl": "net.core.a=1\n",
    "a.nic": "vmxnet3\n",
    "a.ethtool": "eth0 -K gro off\n",
    "a.rps": "eth0 rx-0 rps_cpus 1\n",
    "pf.conf": "block all\n",
}


class EmptyHost:
    """A DUT without any ruleset."""

    def run(self, command: str, *_: str) -> SimpleNamespace:
        return SimpleNamespace(rc=0, stdout="0\n" if "| " in command else "", stderr="")


def test_every_kind_is_missing_on_an_empty_dut() -> None:
    files = [ruleset_file(name, text) for name, text in EVERY_KIND.items()]
    assert {file.kind for file in files} == set(KINDS)
    assert {file.kind for file in files if missing(EmptyHost(), file) is None} == set()


@pytest.mark.parametrize("name", EVERY_KIND)
def test_an_unreachable_dut_is_inconclusive(name: str) -> None:
    with pytest.raises(Inconclusive, match="lost the connection to the DUT"):
        missing(LostHost(), ruleset_file(name, EVERY_KIND[name]))


def test_a_name_that_turns_the_text_round_is_shown_escaped() -> None:
    file = ruleset_file("a.ipset", "create \u202eevil hash:ip\n")
    said = absent_from(FakeHost({"ipset list -n": ""}), [file])
    assert said == "a.ipset: loaded, but the DUT does not hold: sets \\u202eevil"


def test_a_tool_that_cannot_list_is_inconclusive() -> None:
    with pytest.raises(Inconclusive, match="the DUT cannot list what it holds: ipset: no such tool"):
        missing(FakeHost({"ipset list -n": ""}, rc=1), ruleset_file("a.ipset", EVERY_KIND["a.ipset"]))


@pytest.mark.parametrize(
    ("text", "tables", "rules"),
    [
        ("table t { chain c { drop; accept } }", {"ip t"}, {"ip t": 2}),
        ("table inet t {\n set s { type ipv4_addr; elements = { 1.1.1.1, 2.2.2.2 } }\n}", {"inet t"}, {}),
        ("table t {\n chain c {\n  ip saddr {\n 1.1.1.1,\n 2.2.2.2\n } drop\n  accept\n }\n}", {"ip t"}, {"ip t": 2}),
        ('table t {\n chain c {\n  comment "a {"; policy drop;\n  counter comment "; {"\n }\n}', {"ip t"}, {"ip t": 1}),
        ("add table t\nadd chain t c { type filter hook input priority 0; }\nadd rule t c drop", {"ip t"}, {"ip t": 1}),
        ("add table t\nadd rule t c ip saddr { 1.1.1.1 } \\\n drop\ninsert rule t c accept", {"ip t"}, {"ip t": 2}),
        ("table t { chain c { drop } }\nflush ruleset\ntable ip6 u { chain c { drop } }", {"ip6 u"}, {"ip6 u": 1}),
        ("table t {}\ntable ip6 u {}\nflush ruleset ip6\n", {"ip t"}, {}),
        ("table t {}\ndelete table t\n", set(), {}),
        ("table t { chain c { drop } }\ndelete rule t c handle 4\n", {"ip t"}, {}),
        ("define x = 1.1.1.1\nadd element t s { $x }\n# table u {}\n", set(), {}),
        ("}}}{{{ table", set(), {}),
        ('table t { chain c { log prefix "', set(), {}),
    ],
)
def test_contents_of_an_nft_file(text: str, tables: set[str], rules: dict[str, int]) -> None:
    found, counted = nft.declared_tables(text)
    assert {" ".join(table) for table in found} == tables
    assert {" ".join(table): count for table, count in counted.items() if count} == rules
