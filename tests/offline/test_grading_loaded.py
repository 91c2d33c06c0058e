# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the grader sees it when the kernel does not hold what a file says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fwlab.doors.grading.loaded import ROUTES, missing
from fwlab.logic.render import ruleset_file


class FakeHost:
    """A DUT whose tools answer what they are told to; each call must be one that was foreseen."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    def run(self, command: str, *arguments: str) -> SimpleNamespace:
        return SimpleNamespace(stdout=self.answers[command % arguments if arguments else command])

    def check_output(self, command: str) -> str:
        return self.answers[command].rstrip()


def tc(ingress: str) -> dict[str, str]:
    places = {"ingress": ingress, "egress": "", "root": ""}
    return {f"tc filter show dev eth0 {place}": listed for place, listed in places.items()}


XDP = """Filtered ports:
  53                                       dst,udp          0
Filtered IP addresses:
  2001:2::1                                src              0
Loaded on interfaces:
  eth0 (native mode)                       tcp,udp,ipv6,ipv4,ethernet,allow
"""
LEGACY, LEGACY6 = (f"{name}-legacy-save | grep -c ^-A || true" for name in ("iptables", "ip6tables"))


@pytest.mark.parametrize(
    ("name", "text", "answers", "absent"),
    [
        ("a.ipset", "create one hash:ip\ncreate two hash:ip\n", {"ipset list -n": "one\ntwo\n"}, None),
        ("a.ipset", "create one hash:ip\ncreate two hash:ip\n", {"ipset list -n": "one\n"}, "sets two"),
        ("a.iptables", "*raw\n-A A -j X\n-I A -j Y\nCOMMIT\n", {LEGACY: "2"}, None),
        ("a.iptables", "*raw\n-A A -j X\n-I A -j Y\nCOMMIT\n", {LEGACY: "1"}, "1 of 2 rules"),
        ("a.ip6tables", "*raw\n-A A -j X\nCOMMIT\n", {LEGACY6: "0"}, "1 of 1 rules"),
        ("a.nft", "table ip t {\n}\n", {"nft list tables": ""}, "tables"),
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
        ("a.sysctl", "; x=1\n- net.core.a = 1 2\n", {"sysctl -n net.core.a": "1\t2\n"}, None),
        ("a.sysctl", "net.core.a=1\n", {"sysctl -n net.core.a": "2\n"}, "net.core.a = 1 (it is 2)"),
        ("a.sysctl", "net.core.a=1\n", {"sysctl -n net.core.a": ""}, "net.core.a = 1 (it is unknown)"),
        ("a.ethtool", "eth0 -K gro off\n", {}, None),
    ],
)
def test_what_is_missing_is_named(name: str, text: str, answers: dict[str, str], absent: str | None) -> None:
    assert missing(FakeHost(answers), ruleset_file(name, text)) == absent
