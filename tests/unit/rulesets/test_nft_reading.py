# SPDX-License-Identifier: GPL-2.0-or-later
"""nftables files are read as nft 1.0.6 reads them: its words, its variables, and the places where names stand."""

from __future__ import annotations

from functools import partial

import pytest

from fwlab.model.errors import BadInput
from fwlab.rulesets.render import ruleset_file
from tests.fakes.bounded import said

HOOK = "type filter hook ingress"


def faults(text: str) -> str:
    try:
        ruleset_file("a.nft", text)
    except BadInput as refused:
        return refused.message
    return ""


def hooked(device: str, before: str = "", within: str = "") -> str:
    """A hook in line 4, if `before` is a line and `within` none."""
    return f"{before}\ntable netdev t {{\n chain c {{\n {within}{HOOK} {device} priority 0; policy accept; }}\n}}\n"


# ---- variables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *(hooked(f"device ${name}", f"define {name} = eth2") for name in ("UP-LINK", "up.link", "up/link", "_", ".up")),
        hooked("device $ a", 'define a = "eth2"'),
        hooked("device $a", "define a = eth0; redefine a = eth2"),
        hooked("device $b", "define a = eth2; define b = $a"),
        hooked("device $a", "define a = eth0", "redefine a = eth2; "),
        hooked("device $a", "define a = eth2", "undefine a; "),
        hooked("devices = { eth0, $a }", "define a = eth2"),
        hooked("devices = $a", "define a = { eth0, eth2 }"),
        hooked("devices = $b", "define a = eth2; define b = { eth0, $a }"),
    ],
)
def test_a_variable_may_stand_for_the_device_of_a_hook(text: str) -> None:
    assert faults(text) == "a.nft:4: eth2 is not one of the DUT's test links"


@pytest.mark.parametrize(
    "text",
    [
        hooked("device $a", "define a = eth2; redefine a = eth0"),
        hooked("device $a", "define a = eth2", "redefine a = eth0; "),
        hooked("device $a", "define a = eth0\ndefine b = $a; redefine b = eth2"),
        f"define a = eth0\ntable netdev t {{ chain b {{ redefine a = eth2; }}; chain c {{ {HOOK} device $a; }}; }}\n",
        "define a = eth2\n",
        hooked("device eth0", "define a = eth2") + "add rule netdev t c iifname $a drop\n",
    ],
)
def test_a_variable_is_what_it_was_last_in_its_block(text: str) -> None:
    assert faults(text) == ""


FLOWTABLE = "define a-b = eth2\ntable inet t {\n flowtable f {\n  hook ingress priority 0; devices = { $a-b };\n }\n}\n"
INGRESS = f"table netdev t {{\n chain c {{ {HOOK} device eth0 priority 0;\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (FLOWTABLE, 4),
        ("define a-b = eth2\n" + INGRESS + "fwd to $a-b; }\n}\n", 4),
        ("define a-b = eth2\n" + INGRESS + "dup to $ a-b; }\n}\n", 4),
        (INGRESS + "fwd ip to 198.18.0.9 device eth2; }\n}\n", 3),
        (INGRESS + "fwd to meta mark map { 1 : eth0, 2 : eth2 }; }\n}\n", 3),
        ("define a = eth2\n" + INGRESS + "fwd to meta mark map { 1 : $a }; }\n}\n", 4),
        (INGRESS + "fwd to meta mark map @m; }\n map m { type mark : ifname; elements = { 1 : eth2 } }\n}\n", 3),
        (INGRESS + "fwd to meta mark map @m; }\n}\nadd element netdev t m { 1 : eth0, 2 : eth2 }\n", 3),
        ("define m = { 1 : eth2 }\n" + INGRESS + "fwd to meta mark map $m; }\n}\n", 4),
    ],
)
def test_the_management_is_found_wherever_packets_can_be_sent(text: str, line: int) -> None:
    assert faults(text) == f"a.nft:{line}: eth2 is not one of the DUT's test links"


def test_a_map_of_the_links_may_name_targets() -> None:
    assert faults(INGRESS + "fwd to meta mark map { 1 : eth0, 2 : eth1 }; dup to 198.18.0.9 device eth1; }\n}\n") == ""
    named = " map m { type mark : ifname; elements = { 1 : eth1 } }\n}\n"
    assert faults(INGRESS + "fwd to meta mark map @m; }\n" + named) == ""


# ---- chains ---------------------------------------------------------------------------------------------------


def bomb(call: str, before: str = "") -> str:
    """Ten calls on each of seven levels; `call` is made of the number of the called chain."""
    chains = "".join(f"chain c{n}/x {{\n{(call.format(n + 1) + chr(10)) * 10}}}\n" for n in range(7))
    head = "table ip t {\nchain c { type filter hook input priority 0; jump c0/x; }\n"
    return before + head + chains + "chain c7/x { accept; }\n}\n"


@pytest.mark.parametrize(
    "text",
    [
        bomb("jump c{}/x"),
        bomb("jump $j-{}", "".join(f"define i{n} = c{n}/x\ndefine j-{n} = $i{n}\n" for n in range(1, 8))),
        bomb("tcp dport vmap $j.{}", "".join(f"define j.{n} = {{ 80 : jump c{n}/x }}\n" for n in range(1, 8))),
        bomb("redefine a = c{}/x; jump $ a", "define a = x\n"),
    ],
)
def test_a_jump_bomb_by_any_name(text: str) -> None:
    assert faults(text).startswith("a.nft:1: a packet may pass more than 300000 rules")


# ---- names of hosts -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in HOSTS.items() for text in texts])
def test_a_name_of_a_host_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadInput, match=f": the name {name}: a ruleset must not ask a name server") as refused:
        ruleset_file("a.nft", text)
    assert refused.value.hint == "use its address"


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_another_name_is_none_of_a_host(text: str) -> None:
    assert faults(text) == ""


# ---- what it costs --------------------------------------------------------------------------------------------

MANY = 10_000
HEAD = "table ip t {\n chain c { type filter hook forward priority 0;\n"
COSTLY = {
    "words in jumps": "define a = " + " ".join(f"c{n}" for n in range(MANY)) + "\n" + HEAD + " jump $a\n" * MANY,
    "verdicts in maps": "define a = { "
    + ", ".join(f"{n} : jump c{n}" for n in range(MANY))
    + " }\n"
    + HEAD
    + " tcp dport vmap $a\n" * MANY,
    "definitions without end": "device define a={" * MANY,
    "sets in a rule": HEAD + "jump x" + " { 1 }" * 10 * MANY,
    "braces": HEAD + "jump x" + "{" * 5 * MANY,
    "variables of variables": "".join(f"define a{n + 1} = {{ $a{n}, eth0 }}\n" for n in range(MANY))
    + "table netdev t {\n"
    + "".join(f"chain c{n} {{ {HOOK} devices = $a{MANY - n} priority 0; }}\n" for n in range(MANY)),
    "a map asked often": INGRESS
    + "fwd to meta mark map @m\n" * MANY
    + "}\n map m { type mark : ifname; elements = { "
    + ", ".join(f"{n} : eth0" for n in range(MANY)),
    "a word of a megabyte": HEAD + "ip saddr " + "a" * 1_000_000 + " jump " + "1." * 500_000,
    "blanks behind a sign": "jump $" + " " * 1_000_000,
    "colons": "jump x " + "a:" * 500_000,
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_small_file_is_read_quickly(name: str) -> None:
    """Each took minutes or gigabytes, or would have if it were ten times as long."""
    assert "too costly" not in said(partial(ruleset_file, "a.nft", COSTLY[name]))


def test_a_variable_of_many_verdicts_in_many_tables_is_too_much() -> None:
    verdicts = "define a = { " + ", ".join(f"{n} : jump c{n}" for n in range(2000)) + " }\n"
    tables = "".join(f"table ip t{n} {{\n chain c {{ tcp dport vmap $a; }}\n}}\n" for n in range(600))
    assert said(partial(ruleset_file, "a.nft", verdicts + tables)).startswith("a.nft:1: chains and verdict maps branch")
