# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.nft files."""

from __future__ import annotations

from fwlab.rulesets.kinds.nft import LIST as NFT
from tests.contract.kinds import ASKS, Samples

ONE_RULE = "table netdev t {\n  chain c {\n    type filter hook ingress device eth0 priority 0;\n    drop\n  }\n}\n"
LISTED = """table netdev t { # handle 1
\tchain c { # handle 2
\t\ttype filter hook ingress device "eth0" priority filter; policy accept;
\t\tdrop # handle 4
\t}
}
"""
HOOK = "type filter hook ingress"


def hooked(device: str, before: str = "", within: str = "") -> str:
    """A hook in line 4, if `before` is a line and `within` none."""
    return f"{before}\ntable netdev t {{\n chain c {{\n {within}{HOOK} {device} priority 0; policy accept; }}\n}}\n"


FLOWTABLE = "define a-b = eth2\ntable inet t {\n flowtable f {\n  hook ingress priority 0; devices = { $a-b };\n }\n}\n"
INGRESS = f"table netdev t {{\n chain c {{ {HOOK} device eth0 priority 0;\n"


def bomb(call: str, before: str = "") -> str:
    """Ten calls on each of seven levels; `call` is made of the number of the called chain."""
    chains = "".join(f"chain c{n}/x {{\n{(call.format(n + 1) + chr(10)) * 10}}}\n" for n in range(7))
    head = "table ip t {\nchain c { type filter hook input priority 0; jump c0/x; }\n"
    return before + head + chains + "chain c7/x { accept; }\n}\n"


def rule(text: str, family: str = "ip") -> str:
    sets = " set s.a { type ipv4_addr; }\n map m.b { type ipv4_addr : verdict; }\n"
    return f"table {family} t {{\n{sets} chain x.y {{ }}\n chain c {{\n  {text}\n }}\n}}\n"


HOSTS = {
    "web.example.org": [
        *(rule(f"ip saddr {value} drop") for value in ("web.example.org", "!= web.example.org", '"web.example.org"')),
        rule("ip saddr { 198.18.0.1, web.example.org } drop"),
        rule("ip saddr 198.18.0.1-web.example.org drop"),
        rule("ip saddr . tcp dport { web.example.org . 80 } drop"),
        rule("ct original ip daddr web.example.org drop"),
        rule("ip saddr \\\n web.example.org drop"),
        rule("ip6 daddr web.example.org drop", "inet"),
        rule("dnat to web.example.org"),
        rule("snat ip to web.example.org", "inet"),
        "define A = { 198.18.0.1, web.example.org }\n" + rule("ip saddr != $A drop"),
        "define A = web.example.org\ndefine B = { $A }\n" + rule("ip saddr $B drop"),
        "add rule ip t c ip saddr web.example.org drop\n",
        "add element ip t s { 198.18.0.1, web.example.org }\n",
        "table ip t {\n map m { type inet_service : ipv4_addr; elements = { 80 : web.example.org } }\n}\n",
    ],
    "web": [
        rule("ip saddr web drop"),
        rule("ip saddr {\n web,\n 198.18.0.1 } drop"),
        rule("ip saddr vmap { web : drop }"),
        rule("tcp dport 80 dnat to web:8080"),
        "define A = web\n" + rule("ip saddr $A drop"),
        "table ip t {\n set s { type ipv4_addr; elements = { web } }\n}\n",
        "table ip t {\n set s { typeof ip saddr; elements = { 198.18.0.1, web } }\n}\n",
        "add set ip t s { type ipv4_addr; }\nadd element ip t s { web }\n",
    ],
}

OUTSIDE = "eth2 is not one of the DUT's test links"
BY_VARIABLE = [
    *(hooked(f"device ${name}", f"define {name} = eth2") for name in ("UP-LINK", "up.link", "up/link", "_", ".up")),
    hooked("device $ a", 'define a = "eth2"'),
    hooked("device $a", "define a = eth0; redefine a = eth2"),
    hooked("device $b", "define a = eth2; define b = $a"),
    hooked("device $a", "define a = eth0", "redefine a = eth2; "),
    hooked("device $a", "define a = eth2", "undefine a; "),
    hooked("devices = { eth0, $a }", "define a = eth2"),
    hooked("devices = $a", "define a = { eth0, eth2 }"),
    hooked("devices = $b", "define a = eth2; define b = { eth0, $a }"),
]
IN_ITS_BLOCK = [
    hooked("device $a", "define a = eth2; redefine a = eth0"),
    hooked("device $a", "define a = eth2", "redefine a = eth0; "),
    hooked("device $a", "define a = eth0\ndefine b = $a; redefine b = eth2"),
    f"define a = eth0\ntable netdev t {{ chain b {{ redefine a = eth2; }}; chain c {{ {HOOK} device $a; }}; }}\n",
    "define a = eth2\n",
    hooked("device eth0", "define a = eth2") + "add rule netdev t c iifname $a drop\n",
]
SENT_THERE: list[tuple[str, int]] = [
    (FLOWTABLE, 4),
    ("define a-b = eth2\n" + INGRESS + "fwd to $a-b; }\n}\n", 4),
    ("define a-b = eth2\n" + INGRESS + "dup to $ a-b; }\n}\n", 4),
    (INGRESS + "fwd ip to 198.18.0.9 device eth2; }\n}\n", 3),
    (INGRESS + "fwd to meta mark map { 1 : eth0, 2 : eth2 }; }\n}\n", 3),
    ("define a = eth2\n" + INGRESS + "fwd to meta mark map { 1 : $a }; }\n}\n", 4),
    (INGRESS + "fwd to meta mark map @m; }\n map m { type mark : ifname; elements = { 1 : eth2 } }\n}\n", 3),
    (INGRESS + "fwd to meta mark map @m; }\n}\nadd element netdev t m { 1 : eth0, 2 : eth2 }\n", 3),
    ("define m = { 1 : eth2 }\n" + INGRESS + "fwd to meta mark map $m; }\n}\n", 4),
]
BOMBS = [
    bomb("jump c{}/x"),
    bomb("jump $j-{}", "".join(f"define i{n} = c{n}/x\ndefine j-{n} = $i{n}\n" for n in range(1, 8))),
    bomb("tcp dport vmap $j.{}", "".join(f"define j.{n} = {{ 80 : jump c{n}/x }}\n" for n in range(1, 8))),
    bomb("redefine a = c{}/x; jump $ a", "define a = x\n"),
]


def verdicts(count: int, chain: str) -> str:
    return "tcp dport vmap { " + ", ".join(f"{port} : jump {chain}" for port in range(count)) + " }; "


BRANCHES = f"""table ip t {{
 chain c {{ type filter hook input priority 0; {"jump c1; " * 100} }}
 chain c1 {{ {verdicts(300, "c2")} }}
 chain c2 {{ {verdicts(400, "c3")} }}
 chain c3 {{ accept; }}
}}
"""
OTHER_NAMES = [
    *map(
        rule,
        [
            "ip saddr 198.18.0.1 jump x.y",
            "ip saddr vmap @m.b",
            "ip saddr @s.a drop",
            'iifname "lan.home" drop',
            "iifname { lan.home, eth0 } drop",
            "tcp dport { http, https } accept",
            "ct state established,related accept",
            'log prefix "see web.example.org "',
            'comment "see web.example.org"',
            'iifname . ip saddr { "eth0" . 198.18.0.1 } drop',
            "fib saddr . iif oif missing drop",
            "fib daddr type local accept",
            "update @s.a { ip saddr limit rate 10/second } accept",
            "jhash ip saddr mod 2 == 0 drop",
            "ip saddr & 0.0.0.255 == 7 tcp dport ssh accept",
            "ip saddr 198.18.0.1 counter name a.b",
            "dnat to numgen inc mod 2 map { 0 : 198.18.0.1, 1 : 198.18.0.2 }",
            "dnat to ip saddr map @m.b",
            'ip saddr "198.18.0.1" drop',
            "ip dscp set cs1",
        ],
    ),
    rule("ip6 saddr { dead::beef, 2001:2::1 } drop", "inet"),
    "define LAN = lan.home\n" + rule("iifname $LAN drop"),
    "define UNUSED = web.example.org\n",
    "table ip a.b {\n chain c.d { accept; }\n}\nadd rule ip a.b c.d accept\n",
    "table ip t {\n set s { type ifname; elements = { lan.home, eth0 } }\n}\n",
    "table ip t {\n map m { type ipv4_addr : verdict; elements = { 198.18.0.1 : jump x.y } }\n}\n",
    "table inet t {\n set s { type ipv4_addr . inet_service; elements = { 198.18.0.1 . http } }\n}\n",
]
INCLUDES = "a ruleset must not include another file"
NAMED = " map m { type mark : ifname; elements = { 1 : eth1 } }\n}\n"
SAMPLES = [
    Samples(
        name="nft",
        held=ONE_RULE,
        accepted=[
            "table ip lab {\n  map m {\n    elements = {\n      tc : drop\n    }\n  }\n}",
            'add table ip t { comment "include nothing" ; }  # include "that"',
            "add set ip t included { type ipv4_addr; }",
            *IN_ITS_BLOCK,
            INGRESS + "fwd to meta mark map { 1 : eth0, 2 : eth1 }; dup to 198.18.0.9 device eth1; }\n}",
            INGRESS + "fwd to meta mark map @m; }\n" + NAMED,
            *OTHER_NAMES,
        ],
        refused=[
            *((text, f"4: {OUTSIDE}") for text in BY_VARIABLE),
            *((text, f"{line}: {OUTSIDE}") for text, line in SENT_THERE),
            *((text, "1: a packet may pass more than 300000 rules") for text in BOMBS),
            (BRANCHES, "1: chains and verdict maps branch into more than 10000000 rules"),
            *((text, ASKS.format(name)) for name, texts in HOSTS.items() for text in texts),
            ('add table ip t; include "x"\n', f"1: {INCLUDES}"),
            ('add table ip t { comment "a" ; } include "x"\n', f"1: {INCLUDES}"),
        ],
        loaded=[("# x\n", [("nft -f -", "# x\n")])],
        each=[
            (
                "add table ip t\n  add x; $(reboot) | reboot\n# end\n",
                [["nft", "add table ip t"], ["nft", "add x; $(reboot) | reboot"]],
            )
        ],
        missing=[
            ("table ip t {\n}\n", {NFT: ""}, "tables ip t"),
            ("add table t; add table inet u\n", {NFT: "table ip t { # handle 1\n}\n"}, "tables inet u"),
            (ONE_RULE, {NFT: LISTED}, None),
            (ONE_RULE, {NFT: LISTED.replace("\t\tdrop # handle 4\n", "")}, "1 of 1 rules of table netdev t"),
            (ONE_RULE, {NFT: LISTED.replace("netdev t", "netdev u")}, "tables netdev t"),
        ],
    )
]
