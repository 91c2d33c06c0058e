# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of rulesets: equal by construction, and different in one planted place.

A ruleset is written as text with its kind. A planted difference has to be explained by a part of what decided,
or was met, on each side; `or_else` where the two rulesets differ both ways.
"""

from __future__ import annotations

from typing import NamedTuple

NFT, IPTABLES, IP6TABLES = "nft", "iptables", "ip6tables"


class Rules(NamedTuple):
    kind: str
    text: str


class Planted(NamedTuple):
    old: Rules
    new: Rules
    explained_old: str
    explained_new: str
    or_else: tuple[str, str] = ("", "")


def table(body: str, before: str = "", hook: str = "forward", policy: str = "drop", more: str = "") -> Rules:
    """An nft table with one chain."""
    lines = "\n".join(line.strip() for line in body.strip().splitlines())
    chain = f"chain c {{\ntype filter hook {hook} priority 0; policy {policy};\n{lines}\n}}\n"
    return Rules(NFT, f"table inet f {{\n{before}\n{chain}{more}}}\n")


def saved(filter_rules: str, nat: str = "", mangle: str = "", kind: str = IPTABLES) -> Rules:
    """What iptables-save prints: its filter table, and others."""
    text = ""
    if mangle:
        text += "*mangle\n:PREROUTING ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
        text += f"{_lines(mangle)}COMMIT\n"
    if nat:
        text += f"*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n{_lines(nat)}COMMIT\n"
    chains = ":INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n:own - [0:0]\n"
    return Rules(kind, text + f"*filter\n{chains}{_lines(filter_rules)}COMMIT\n")


def _lines(text: str) -> str:
    return "".join(f"{line.strip()}\n" for line in text.strip().splitlines())


STATE = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
BLOCKED = "-A FORWARD -s 192.0.2.0/24 -i wan -j DROP"
PORTS = "-A FORWARD -i lan -o wan -p tcp -m multiport --dports 22,80,443 -j ACCEPT"
WEB = 'iifname "lan" oifname "wan" tcp dport { 80, 443 } accept'
SET = "set s { type ipv4_addr; flags interval; elements = { 10.1.0.0/16, 192.0.2.7, 198.51.100.0-198.51.100.99 }; }"
NAT_CHAIN = "chain n {{ type nat hook postrouting priority 100; {}; }}\n"
DNAT, PORT_80 = "-A PREROUTING -d 203.0.113.5/32 -p tcp", "-A PREROUTING -i wan -p tcp -m tcp --dport 80"
DNAT_80 = f"{DNAT} -m tcp --dport 80"
TO_WEB = "-A FORWARD -d 192.168.1.2/32 -o lan -p tcp -m tcp --dport 80 -j ACCEPT"
LAN_TO_WAN = 'iifname "lan" oifname "wan" tcp dport { 22, 80, 443 } accept'
BOTH = "ip saddr 192.0.2.0/24 tcp dport 80 accept\nip6 saddr 2001:db8::/32 tcp dport 80 accept"

EQUAL: dict[str, tuple[Rules, Rules]] = {
    "the same": (table(WEB), table(WEB)),
    "chain renamed": (
        saved(f"{STATE}\n-A FORWARD -i lan -j own\n-A own -p udp -m udp --dport 53 -j ACCEPT"),
        Rules(IPTABLES, saved(
            f"{STATE}\n-A FORWARD -i lan -j own\n-A own -p udp -m udp --dport 53 -j ACCEPT"
        ).text.replace("own", "dns")),
    ),
    "table renamed": (table(WEB), Rules(NFT, table(WEB).text.replace("inet f ", "inet other "))),
    "disjoint rules reordered": (
        table("tcp dport 22 accept\nudp dport 53 accept"), table("udp dport 53 accept\ntcp dport 22 accept"),
    ),
    "ports folded into a set": (
        table("tcp dport 22 accept\ntcp dport 80 accept\ntcp dport 443 accept"),
        table("tcp dport { 22, 80, 443 } accept"),
    ),
    "addresses folded into a named set": (
        table("ip saddr 10.1.0.0/16 accept\nip saddr 192.0.2.7 accept\nip saddr 198.51.100.0-198.51.100.99 accept"),
        table("ip saddr @s accept", SET),
    ),
    "iptables translated to nft": (
        saved(f"{STATE}\n{PORTS}"),
        Rules(NFT, "table ip f {\nchain c {\ntype filter hook forward priority 0; policy drop;\n"
              f'ct state established,related accept\n{LAN_TO_WAN}\n}}\n}}\n'),
    ),
    "multiport unfolded": (
        saved(f"{STATE}\n{PORTS}"),
        saved("\n".join([STATE, *(
            f"-A FORWARD -i lan -o wan -p tcp -m tcp --dport {port} -j ACCEPT" for port in (443, 80, 22)
        )])),
    ),
    "prefixes joined": (
        saved("-A FORWARD -s 10.0.0.0/9 -j ACCEPT\n-A FORWARD -s 10.128.0.0/9 -j ACCEPT"),
        saved("-A FORWARD -s 10.0.0.0/8 -j ACCEPT"),
    ),
    "ports joined to a range": (
        table("udp dport 1000-1999 accept\nudp dport 2000-2999 accept"), table("udp dport 1000-2999 accept"),
    ),
    "policy written as a rule": (table(WEB), table(f"{WEB}\ndrop", policy="accept")),
    "shadowed rule removed": (
        table("ip saddr 10.0.0.0/8 drop\nip saddr 10.1.0.0/16 accept\ntcp dport 80 accept"),
        table("ip saddr 10.0.0.0/8 drop\ntcp dport 80 accept"),
    ),
    "state module of two generations": (
        saved(STATE + "\n" + PORTS), saved("-A FORWARD -m state --state ESTABLISHED,RELATED -j ACCEPT\n" + PORTS),
    ),
    "states in a map": (
        table(f"ct state invalid drop\nct state established,related accept\n{WEB}"),
        table(f"ct state vmap {{ established : accept, related : accept, invalid : drop }}\n{WEB}"),
    ),
    "rules moved to a chain": (
        table('iifname "lan" tcp dport 22 accept\niifname "lan" udp dport 53 accept'),
        table('iifname "lan" jump l', more="chain l {\ntcp dport 22 accept\nudp dport 53 accept\n}\n"),
    ),
    "masquerade in two tools": (
        saved(f"{STATE}\n-A FORWARD -i lan -j ACCEPT", nat="-A POSTROUTING -o wan -j MASQUERADE"),
        Rules(NFT, "table ip f {\nchain c {\ntype filter hook forward priority 0; policy drop;\n"
              'ct state established,related accept\niifname "lan" accept\n}\n'
              'chain n {\ntype nat hook postrouting priority 100;\noifname "wan" masquerade\n}\n}\n'),
    ),
    "SYN in two spellings": (
        saved("-A FORWARD -p tcp -m tcp --syn --dport 25 -j ACCEPT"),
        saved("-A FORWARD -p tcp -m tcp --dport 25 --tcp-flags FIN,SYN,RST,ACK SYN -j ACCEPT"),
    ),
    "both families, one table or two": (
        table(BOTH),
        Rules(NFT, "table ip f {\nchain c {\ntype filter hook forward priority 0; policy drop;\n"
              "ip saddr 192.0.2.0/24 tcp dport 80 accept\n}\n}\n"
              "table ip6 f {\nchain c {\ntype filter hook forward priority 0; policy drop;\n"
              "ip6 saddr 2001:db8::/32 tcp dport 80 accept\n}\n}\n"),
    ),
    "counters and comments": (table(WEB), table(WEB.replace("accept", 'counter accept comment "web"'))),
    "input with the same limit": (
        table("tcp dport 22 limit rate 3/minute burst 4 packets accept", hook="input"),
        Rules(IPTABLES, saved("").text.replace(":INPUT ACCEPT", ":INPUT DROP").replace(
            ":own - [0:0]\n",
            "-A INPUT -p tcp -m tcp --dport 22 -m limit --limit 3/min --limit-burst 4 -j ACCEPT\n",
        ).replace(":FORWARD DROP", ":FORWARD ACCEPT")),
    ),
}  # fmt: skip
# That pair differs in what has no chain there: nft's says nothing about IPv6 either way in iptables' one.
EQUAL["input with the same limit"] = (
    Rules(
        NFT, table("tcp dport 22 limit rate 3/minute burst 4 packets accept", hook="input").text.replace("inet", "ip")
    ),
    EQUAL["input with the same limit"][1],
)

DIFFERENT: dict[str, Planted] = {
    "upper border of a port range": Planted(
        table("tcp dport 1000-2000 accept"), table("tcp dport 1000-1999 accept"), "1000-2000", "policy drop"
    ),
    "lower border of a port range": Planted(
        saved("-A FORWARD -p udp -m udp --dport 5000:5010 -j ACCEPT"),
        saved("-A FORWARD -p udp -m udp --dport 5001:5010 -j ACCEPT"), "5000:5010", "policy drop",
    ),
    "a prefix one bit shorter": Planted(
        saved("-A FORWARD -s 10.2.0.0/16 -j ACCEPT"), saved("-A FORWARD -s 10.2.0.0/15 -j ACCEPT"), "policy", "/15"
    ),
    "lost --syn": Planted(
        saved("-A FORWARD -p tcp -m tcp --dport 25 --syn -j ACCEPT"),
        saved("-A FORWARD -p tcp -m tcp --dport 25 -j ACCEPT"), "policy", "--dport 25",
    ),
    "answers of who is blocked": Planted(
        saved(f"{BLOCKED}\n{STATE}\n{PORTS}"), saved(f"{STATE}\n{BLOCKED}\n{PORTS}"),
        "-s 192.0.2.0/24", "ESTABLISHED",
    ),
    "a border of the loopback network": Planted(
        table("ip saddr 127.0.0.0/8 accept", hook="input"), table("ip saddr 127.0.0.0/9 accept", hook="input"),
        "127.0.0.0/8", "policy",
    ),
    "a missing state": Planted(
        saved(f"{STATE}\n{PORTS}"), saved(f"{STATE.replace('RELATED,', '')}\n{PORTS}"), "RELATED", "policy",
    ),
    "state asked for too much": Planted(
        table("tcp dport 80 ct state { new, established } accept"), table("tcp dport 80 ct state new accept"),
        "established", "policy",
    ),
    "order of NAT": Planted(
        saved("-A FORWARD -j ACCEPT", nat=f"{DNAT_80} -j DNAT --to 192.168.1.2\n{DNAT} -j DNAT --to 192.168.1.3"),
        saved("-A FORWARD -j ACCEPT", nat=f"{DNAT} -j DNAT --to 192.168.1.3\n{DNAT_80} -j DNAT --to 192.168.1.2"),
        "192.168.1.2", "192.168.1.3",
    ),
    "another port behind NAT": Planted(
        saved(TO_WEB, nat=f"{PORT_80} -m addrtype --dst-type LOCAL -j DNAT --to 192.168.1.2:80"),
        saved(TO_WEB, nat=f"{PORT_80} -m addrtype --dst-type LOCAL -j DNAT --to 192.168.1.2:8080"),
        "192.168.1.2:80", "192.168.1.2:8080",
    ),
    "masquerade lost on one interface": Planted(
        table(WEB, more=NAT_CHAIN.format('oifname { "wan", "lte" } masquerade'), policy="accept"),
        table(WEB, more=NAT_CHAIN.format('oifname "wan" masquerade'), policy="accept"), '"lte"', "policy",
    ),
    "reject in place of drop": Planted(
        table("udp dport 123 drop", policy="accept"), table("udp dport 123 reject", policy="accept"),
        "123 drop", "123 reject",
    ),
    "reject by another message": Planted(
        saved("-A FORWARD -p tcp -m tcp --dport 113 -j REJECT --reject-with tcp-reset"),
        saved("-A FORWARD -p tcp -m tcp --dport 113 -j REJECT --reject-with icmp-port-unreachable"),
        "tcp-reset", "icmp-port-unreachable",
    ),
    "IPv6 forgotten": Planted(
        table("tcp dport 80 accept"), Rules(NFT, table("tcp dport 80 accept", policy="drop").text.replace(
            "tcp dport 80 accept", "meta nfproto ipv4 tcp dport 80 accept")), "tcp dport 80 accept", "policy",
    ),
    "another burst": Planted(
        table("udp dport 53 limit rate 1/minute burst 6 packets accept"),
        table("udp dport 53 limit rate 1/minute burst 5 packets accept"), "burst 6", "policy",
    ),
    "a limit lost": Planted(
        saved("-A FORWARD -p icmp -m limit --limit 1/min -j ACCEPT"), saved("-A FORWARD -p icmp -j ACCEPT"),
        "policy", "-p icmp -j ACCEPT",
    ),
    "a set's interval": Planted(
        table("ip saddr @s accept", SET), table("ip saddr @s accept", SET.replace("100.99", "100.98")), "@s", "policy"
    ),
    "an element of a long set": Planted(
        table("tcp dport { " + ", ".join(map(str, range(100, 160, 3))) + " } accept"),
        table("tcp dport { " + ", ".join(map(str, [*range(100, 130, 3), *range(133, 160, 3)])) + " } accept"),
        "130", "policy",
    ),
    "DSCP": Planted(
        saved("-A FORWARD -m dscp --dscp 0x2e -j ACCEPT"), saved("-A FORWARD -m dscp --dscp 0x2d -j ACCEPT"),
        "0x2e", "policy", ("policy", "0x2d"),
    ),
    "DSCP written": Planted(
        saved("-A FORWARD -j ACCEPT", mangle="-A FORWARD -p udp -m udp --dport 5060 -j DSCP --set-dscp 0x1a"),
        saved("-A FORWARD -j ACCEPT", mangle="-A FORWARD -p udp -m udp --dport 5060 -j DSCP --set-dscp 0x1c"),
        "--set-dscp 0x1a", "--set-dscp 0x1c",
    ),
    "another interface": Planted(
        table(WEB), table(WEB.replace('oifname "wan"', 'oifname "dmz"')), '"wan"', "policy", ("policy", '"dmz"'),
    ),
    "one rule behind the other": Planted(
        table("ip saddr 10.0.0.5 drop\ntcp dport 80 accept"), table("tcp dport 80 accept\nip saddr 10.0.0.5 drop"),
        "10.0.0.5 drop", "tcp dport 80 accept",
    ),
}  # fmt: skip
