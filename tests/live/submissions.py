# SPDX-License-Identifier: GPL-2.0-or-later
"""Submissions for lab03 that attack the grading or cheat.

Each attack has ended a grading before, and each cheat has passed. A submission is its exercise and its files by name.
"""

from __future__ import annotations

ONE = "ex1-one-host"
BUDGET = "ex6-budget"
ATTACKER = "198.18.20.66"
#: A plausible but slow solution of ex1: it drops after routing.
LATE = f"*filter\n-A FORWARD -s {ATTACKER} -j DROP\nCOMMIT\n"

Files = dict[str, str]


def _chain(family: str, hook: str, rule: str) -> str:
    return f"table {family} x {{\n  chain c {{\n    {hook}\n    {rule}\n  }}\n}}\n"


def _jumps(chains: int = 12, jumps: int = 10) -> str:
    """One packet is compared jumps^chains times, so the DUT hangs."""
    names = [f"J{number}" for number in range(chains)]
    lines = [f":{name} - [0:0]" for name in names]
    for name, after in zip(["PREROUTING", *names], names, strict=False):
        lines += [f"-A {name} -j {after}"] * jumps
    return "\n".join(["*raw", *lines, "COMMIT", ""])


#: The grading must go on, and the submission must fail or be inconclusive.
HOSTILE: dict[str, tuple[str, Files]] = {
    "half-a-letter": (ONE, {"b.ipset": "create s hash:ip\nadd s " + "é" * 900 + "\n"}),
    "log-of-the-flood": (
        ONE,
        {"x.nft": _chain("ip", "type filter hook prerouting priority raw;", 'log prefix "x" level emerg')},
    ),
    "masquerade": (ONE, {"x.nft": _chain("ip", "type nat hook postrouting priority srcnat;", "masquerade")}),
    "redirect": (
        ONE,
        {"x.nft": _chain("ip", "type nat hook prerouting priority dstnat;", "tcp dport 1-65535 redirect")},
    ),
    "management-out": (
        ONE,
        {"x.nft": _chain("inet", "type filter hook output priority 0;", "ct state established tcp sport 22 drop")},
    ),
    "jump-bomb": (ONE, {"x.iptables": _jumps()}),
    "memory": (
        ONE,
        {"x.ipset": "".join(f"create s{n} hash:ip hashsize 16777216 maxelem 4294967295\n" for n in range(8))},
    ),
    "no-text": (ONE, {"\udcff.bad": "x\n"}),
}

#: sysctl files, for an exercise of lab02-conntrack that accepts them.
HOSTILE_SETTINGS: dict[str, Files] = {
    "a-folder": {"x.sysctl": "net.ipv4=1\n"},
    "not-to-be-read": {"x.sysctl": "net.ipv4.route.flush=1\n"},
    "a-secret": {"x.sysctl": "net.ipv6.conf.eth0.stable_secret=2001:2::1\n"},
    "no-ipv6": {"x.sysctl": "net.ipv6.conf.all.disable_ipv6=1\n"},
}

_SPORT = "*raw\n-A PREROUTING -p udp --sport 1025 -j DROP\nCOMMIT\n"

#: They must fail: what happens to a packet depends on its time or number, or on a detail of the test traffic.
CHEATS: dict[str, tuple[str, Files]] = {
    # By the DUT's clock, the plays take about a second and the flood another: the elements expire in one of them.
    "elements-that-expire": (
        ONE,
        {
            "a.nft": "table ip x {\n  set s {\n    type ipv4_addr\n    flags timeout\n    timeout 1s200ms\n"
            f"    elements = {{ {ATTACKER} }}\n  }}\n  chain c {{\n    type filter hook prerouting priority raw;\n"
            "    ip saddr @s drop\n  }\n}\n",
            "late.iptables": LATE,
        },
    ),
    # 11,000 packets. No flood of this exercise took fewer than 29,000 (results/lab03-ipset).
    "quota": (
        ONE,
        {"a.iptables": f"*raw\n-A PREROUTING -s {ATTACKER} -m quota --quota 500000 -j DROP\nCOMMIT\n{LATE}"},
    ),
    "port-of-the-test": (ONE, {"a.iptables": _SPORT}),
    "entries-that-nobody-asks": (
        BUDGET,
        {"a.ipset": "create junk hash:ip maxelem 300000\nadd junk 10.0.0.0-10.4.11.39\n", "a.iptables": _SPORT},
    ),
    "cheaper-packets": (
        ONE,
        {"links.ethtool": "eth0 -K gro off\neth1 -K tx off\n", "late.iptables": LATE},
    ),
}
