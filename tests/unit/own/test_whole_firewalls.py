# SPDX-License-Identifier: GPL-2.0-or-later
"""What whole firewalls have in them: a difference planted behind each is found, and none where there is none."""

from __future__ import annotations

import pytest

from .kernel import lacks
from .pairs import IP6TABLES, IPTABLES, NAT_CHAIN, NFT, Planted, Rules, table
from .test_pairs import changes, compared, explained

pytestmark = pytest.mark.skipif(bool(lacks()), reason=lacks())

ZONES = """
iifname "virbr0" goto inner
goto outer
"""
INNER = "chain inner {\naccept\n}\nchain outer {\ntcp dport 22 ip saddr 192.0.2.0/24 accept\nreject\n}\n"
INPUT = "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"


def host(rules: str, kind: str = IPTABLES) -> Rules:
    """What iptables-save prints of a host that drops what it does not know."""
    chains = ":INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n"
    lines = "".join(f"{line.strip()}\n" for line in rules.strip().splitlines())
    return Rules(kind, f"*filter\n{chains}{lines}COMMIT\n")


def containers(address: str) -> Rules:
    """Docker's rules for two networks, which reach each other in no way."""
    rules = "".join(
        f"""-A FORWARD -i {one} -o {other} -j DROP
        -A FORWARD -d {address} ! -i {one} -o {one} -p tcp -m tcp --dport 80 -j ACCEPT
        """
        for one, other in (("br-a", "br-b"), ("br-b", "br-a"))
    )
    return host(rules)


def concatenated(*elements: str) -> Rules:
    return table("ip saddr . tcp dport { " + ", ".join(elements) + " } accept")


def marking(mark: int) -> Rules:
    text = table("meta mark 0x7 accept").text
    return Rules(NFT, text.replace("chain c {", f"""chain m {{
type filter hook prerouting priority mangle;
tcp dport 8443 meta mark set {mark}
}}
chain c {{""", 1))  # fmt: skip


TIMEOUT = Rules(
    NFT,
    """table ip f {
ct timeout short {
protocol udp;
l3proto ip
policy = { unreplied : 15, replied : 15 }
}
chain r {
type filter hook prerouting priority -200;
ip protocol udp ct timeout set "short"
}
}
""",
)

FOUND: dict[str, Planted] = {
    "behind the zone of another interface": Planted(
        table(ZONES, more=INNER), table(ZONES, more=INNER.replace("0/24", "0/25")), "0/24", "reject"
    ),
    "later than two other ways out": Planted(
        host("-A INPUT -i a -j ACCEPT\n-A INPUT -i b -j DROP\n-A INPUT -i c -p udp -m udp --dport 53 -j ACCEPT"),
        host("-A INPUT -i a -j ACCEPT\n-A INPUT -i b -j DROP\n-A INPUT -i c -p udp -m udp --dport 54 -j ACCEPT"),
        "--dport 53", "policy", ("policy", "--dport 54"),
    ),
    "a port open to the outside, which no rule names": Planted(
        containers("172.18.0.2/32"), containers("172.18.0.2/31"), "policy", "172.18.0.2/31",
    ),
    "lo forgotten": Planted(host(f"-A INPUT -i lo -j ACCEPT\n{INPUT}"), host(INPUT), "-i lo", "policy"),
    "a multicast group": Planted(
        host("-A INPUT -d 224.0.0.251/32 -p udp -m udp --dport 5353 -j ACCEPT"),
        host("-A INPUT -d 224.0.0.252/32 -p udp -m udp --dport 5353 -j ACCEPT"),
        "224.0.0.251", "policy", ("policy", "224.0.0.252"),
    ),
    "an address asked for": Planted(
        host("-A INPUT -p udp -m udp --sport 68 --dport 67 -j ACCEPT"),
        host("-A INPUT ! -s 0.0.0.0/32 -p udp -m udp --sport 68 --dport 67 -j ACCEPT"), "--dport 67", "policy",
    ),
    "a broadcast": Planted(
        host("-A INPUT -m addrtype --dst-type BROADCAST -j DROP\n-A INPUT -p udp -m udp --dport 137 -j ACCEPT"),
        host("-A INPUT -p udp -m udp --dport 137 -j ACCEPT"), "BROADCAST", "--dport 137",
    ),
    "a fragment": Planted(
        Rules(NFT, table("ip frag-off & 0x1fff != 0 drop", policy="accept").text),
        table("ip frag-off & 0x3fff != 0 drop", policy="accept"), "policy", "frag-off",
    ),
    "fragments of IPv6": Planted(
        table("exthdr frag exists drop", policy="accept"), table("exthdr frag missing accept", policy="accept"),
        "exthdr frag exists drop", "policy",
    ),
    "a header of IPv6": Planted(
        table("exthdr hbh exists drop\nexthdr rt exists drop", policy="accept"),
        table("exthdr hbh exists drop", policy="accept"), "exthdr rt", "policy",
    ),
    "a TTL, which is one less behind the route": Planted(
        table("ip ttl 64 drop", policy="accept"), table("ip ttl 63 drop", policy="accept"),
        "ttl 64", "policy", ("policy", "ttl 63"),
    ),
    "a protocol": Planted(
        host("-A INPUT -p ospf -j ACCEPT"), host("-A INPUT -p vrrp -j ACCEPT"), "ospf", "policy", ("policy", "vrrp")
    ),
    "an element of several fields": Planted(
        concatenated("192.0.2.1 . 22", "192.0.2.2 . 80", "192.0.2.3 . 443"),
        concatenated("192.0.2.1 . 22", "192.0.2.2 . 80"), "accept", "policy",
    ),
    "a mark": Planted(marking(7), marking(8), "set 0x00000007", "set 0x00000008"),
    "a time-out": Planted(TIMEOUT, Rules(NFT, TIMEOUT.text.replace("unreplied : 15", "unreplied : 50")), "", ""),
    "NAT of IPv6": Planted(
        table("accept", more=NAT_CHAIN.format('oifname "wan" masquerade')),
        table("accept", more=NAT_CHAIN.format('meta nfproto ipv4 oifname "wan" masquerade')), "masquerade", "policy",
    ),
    "IPv6 of a host": Planted(
        host("-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -m hl --hl-eq 255 -j ACCEPT", IP6TABLES),
        host("-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT", IP6TABLES), "policy", "135 -j",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_was_planted_is_found(name: str) -> None:
    planted = FOUND[name]
    found = compared(planted.old, planted.new)
    assert found.differences
    wanted = {(planted.explained_old, planted.explained_new), planted.or_else}
    for one in found.differences if planted.explained_old else ():
        old, new = explained(one.old, found, "old"), explained(one.new, found, "new")
        assert any(before and before in old and after in new for before, after in wanted), changes([one])


@pytest.mark.parametrize("name", FOUND)
def test_the_same_rules_do_not_differ(name: str) -> None:
    assert not compared(FOUND[name].old, FOUND[name].old).differences


CHANCE = """*nat
:PREROUTING ACCEPT [0:0]
:one - [0:0]
-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j one
-A one -p tcp -m statistic --mode random --probability 0.3 -j DNAT --to-destination 10.0.0.1
-A one -p tcp -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.0.0.2
-A one -p tcp -j DNAT --to-destination 10.0.0.3
COMMIT
"""


def test_what_rules_do_by_chance_is_no_difference() -> None:
    rules = Rules(IPTABLES, CHANCE)
    for seed in (1, 2, 3):
        assert not compared(rules, rules, seed).differences
