# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of iptables files."""

from __future__ import annotations

from tests.contract.kinds import ASKS, Samples

COMMANDS = [
    "[0:0] -A {}",
    "[12:3456]-A {}",
    "  -A {}",
    "\t-I {} 1",
    "-I{}",
    "-D {} 1",
    "-R {} 1",
    "-F {}",
    "--append {}",
    "--app {}",
    "--append={}",
    "--rep {} 1",
    "--ins {}",
    "-vA {}",
    '-A "{}"',
    '"-A" {}',
    '-A"{}"',
    "-j ACCEPT -A {}",
    '-m comment --comment "-A OUTPUT" -A {}',
    "-m comment --comment -AOUTPUT -A {}",
]
NFT_SAVE = "iptables-nft-save | grep -c ^-A || true"
LEGACY, LEGACY6 = (f"{name}-legacy-save | grep -c ^-A || true" for name in ("iptables", "ip6tables"))
HOSTS = ["web.example.org", "web-1.example.org.", "localhost", "web"]
ADDRESSES = [
    "-s {}",
    "! -s {}",
    "--source {}",
    "--src={}",
    "--so {}",
    "-d {}/24",
    "--dst 198.18.0.1,{}",
    '--destination "{}"',
    "-4d {}",
    "-m conntrack --ctorigsrc {}",
    "-j DNAT --to-destination {}:80",
]
OTHER_NAMES = [
    "-s 198.18.0.1/24,198.18.7.0/255.255.255.0",
    "-d 10",
    "-m iprange --src-range 198.18.0.1-198.18.0.9",
    "-m string --algo bm --string web.example.org --to 100",
    '-m comment --comment "-s web.example.org"',
    "-m comment --comment -sweb",
    "-m set --match-set web.example.org src",
    "-i lan.home -o lan+ -p tcp --dport http -j web.example.org",
    "-m addrtype --src-type LOCAL --dst-type UNICAST",
    "-j DNAT --to-destination 198.18.0.1-198.18.0.9:80-90",
    "-j REDIRECT --to-ports 8080",
    "-j LOG --log-prefix see.example.org",
]
THERE = [
    "*raw\n:FORWARD - [0:0]\n-A FORWARD -j DROP\nCOMMIT\n",
    "*raw\n-N FORWARD\n-A FORWARD -j DROP\nCOMMIT\n",
    "*raw\n-6 -A FORWARD -s 2001:2::1\nCOMMIT\n",
    "*raw\n-6A FORWARD -s 2001:2::1\nCOMMIT\n",
    "*raw\n#-A FORWARD\nCOMMIT\n",
    '*raw\n-A PREROUTING -m comment --comment "FORWARD" -j DROP\nCOMMIT\n*filter\n-A FORWARD -j DROP\nCOMMIT\n',
]
MISSING = [
    ("*raw\n-A A -j X\n-I A -j Y\nCOMMIT\n", {LEGACY: "2"}, None),
    ("*raw\n-A A -j X\n-I A -j Y\nCOMMIT\n", {LEGACY: "1"}, "1 of 2 rules"),
    ("*raw\n-A A -j X\n-A A -j Y\n-D A 1\nCOMMIT\n", {LEGACY: "1"}, None),
    ("*raw\n-A A -j X\n-A A -j Y\n-D A 1\nCOMMIT\n", {LEGACY: "0"}, "1 of 1 rules"),
    ("*raw\n-A A -j X\n-F A\nCOMMIT\n", {LEGACY: "0"}, None),
    ("*raw\n[0:0] -A A -j X\nCOMMIT\n", {LEGACY: "0"}, "1 of 1 rules"),
]
EACH = """# blacklist
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -s 198.18.20.66 -j DROP
COMMIT

*filter
-A FORWARD -m comment --comment "two words" -j ACCEPT
-A x; $(reboot)
COMMIT
"""
LINES = [
    ["raw", "-A", "PREROUTING", "-s", "198.18.20.66", "-j", "DROP"],
    ["filter", "-A", "FORWARD", "-m", "comment", "--comment", "two words", "-j", "ACCEPT"],
    ["filter", "-A", "x;", "$(reboot)"],
]
RULES = "*raw\n-A A -j X\nCOMMIT\n"


def samples(name: str, tool: str, saved: str) -> Samples:
    other = "4" if name == "ip6tables" else "6"
    return Samples(
        name=name,
        held=RULES,
        accepted=[
            "*filter",
            "# iptables -t raw -A PREROUTING\n*raw\n-A PREROUTING -m comment --comment iptables -j DROP\nCOMMIT",
            "*mangle\n-A FORWARD -j DROP\nCOMMIT\n*raw\n-A OUTPUT -j DROP\nCOMMIT",
            *(f"*raw\n{command.format('PREROUTING')}\nCOMMIT" for command in COMMANDS),
            f"*raw\n-{other} -A FORWARD -s 2001:2::1\nCOMMIT",
            f"*raw\n-{other}A FORWARD -s 2001:2::1\nCOMMIT",
            "*filter\n-A FORWARD -s 2001:2::/48 -d dead::beef\nCOMMIT",
            "*raw\n-A PREROUTING -s 2001:2::1 -m mac --mac-source 52:54:00:00:00:01 -j DROP\nCOMMIT",
            *(f"*nat\n:web.example.org - [0:0]\n-A PREROUTING {rest}\nCOMMIT" for rest in OTHER_NAMES),
            *(text for text in THERE if name != "ip6tables" or "-6" not in text),
        ],
        refused=[
            ("*filter\n-A PREROUTING -j DROP\nCOMMIT\n", "2: the table filter has no chain PREROUTING"),
            ("*raw\nCOMMIT\n-A PREROUTING -j DROP\n", "3: a rule outside of a table"),
            *(
                (f"*raw\n{command.format('FORWARD')} -s 198.18.0.1\nCOMMIT\n", "2: the table raw has no chain FORWARD")
                for command in COMMANDS
            ),
            *((f"# mine\n{command.format('PREROUTING')}\n", "2: a rule outside of a table") for command in COMMANDS),
            (f"*raw\n-{'6' if other == '4' else '4'} -A FORWARD\nCOMMIT\n", "2: the table raw has no chain FORWARD"),
            ("*filter\n-A FORWARD -s dead.beef\nCOMMIT\n", "2: " + ASKS.format("dead.beef")),
            *(
                (f"*filter\n-A FORWARD {rest.format(host)}\nCOMMIT\n", "2: " + ASKS.format(host))
                for rest in ADDRESSES
                for host in HOSTS
                if name != "ip6tables" or "-4" not in rest
            ),
        ],
        loaded=[("# x\n", [(tool, "# x\n")])],
        each=[(EACH, [[tool.removesuffix("-restore"), "-t", *words] for words in LINES])],
        missing=[
            (RULES, {saved: "1"}, None),
            (RULES, {saved: "0"}, "1 of 1 rules"),
            *(MISSING if name == "iptables" else []),
        ],
    )


SAMPLES = [
    samples("iptables", "iptables-legacy-restore", LEGACY),
    samples("ip6tables", "ip6tables-legacy-restore", LEGACY6),
    samples("iptables-nft", "iptables-nft-restore", NFT_SAVE),
]
