# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.xdp-table files."""

from __future__ import annotations

from fwlab.rulesets.kinds.xdp_table_text import MAX_ASIDE, MAX_ENTRIES, MAX_LISTED, MAX_TABLES
from tests.contract.kinds import Samples

TABLES = {
    "one of each": "table eth0 list saddr,daddr,protocol,sport,dport pass\n"
    "198.18.1.0/24 198.19.0.1-198.19.0.9 udp 1-65535 53\n"
    "table eth0 hash saddr,dport drop\n198.18.1.1 53\n"
    "table eth1 lpm daddr drop\n198.19.0.0/16\n0.0.0.0/0\n"
    "table eth0 array protocol drop\nudp\nicmp-tcp\n255\n",
    "comments": "# nothing\n\n  table  eth0\tlist dport drop # here\n53 # DNS\n",
    "nothing": "# nothing\n",
    "as many tables as there may be": "table eth0 list dport drop\n1\n" * MAX_TABLES,
    "as many entries as a list may have": "table eth0 list dport drop\n" + "1\n" * MAX_LISTED,
    "as many entries of several fields": "table eth0 list dport,sport drop\n" + "1 1\n" * MAX_ASIDE,
    "as many entries as there may be": "table eth0 hash dport drop\n" + "1\n" * MAX_ENTRIES,
}
HEAD = "table eth0 {} drop\n"
REFUSED: list[tuple[str, int, str]] = [
    ("198.18.1.1\n", 1, "198.18.1.1 stands before the first table"),
    ("table eth2 list saddr drop\n1.1.1.1\n", 1, "eth2 is not one of the DUT's test links"),
    ("table eth0 tree saddr drop\n1.1.1.1\n", 1, "tree is not a data structure"),
    ("table eth0 list mark drop\n1\n", 1, "mark is not a field"),
    ("table eth0 list saddr, drop\n1.1.1.1\n", 1, "nothing is not a field"),
    ("table eth0 list saddr,saddr drop\n1.1.1.1 1.1.1.1\n", 1, "saddr,saddr names a field twice"),
    ("table eth0 list saddr redirect\n1.1.1.1\n", 1, "redirect is not a verdict"),
    ("table eth0 list saddr\n1.1.1.1\n", 1, "table eth0 list saddr is not a table"),
    ("table eth0 list saddr drop pinned\n1.1.1.1\n", 1, "table eth0 list saddr drop pinned is not a table"),
    ("table eth0 lpm dport drop\n1\n", 1, "an lpm cannot hold dport"),
    ("table eth0 lpm saddr,daddr drop\n1.1.1.1 1.1.1.1\n", 1, "an lpm cannot hold saddr,daddr"),
    ("table eth0 array saddr drop\n1.1.1.1\n", 1, "an array cannot hold saddr"),
    ("table eth0 list saddr drop\n\ntable eth0 list dport drop\n1\n", 1, "a table without an entry"),
    ("table eth0 list dport drop\n1\ntable eth0 list saddr drop\n", 3, "a table without an entry"),
    (HEAD.format("hash saddr") + "198.18.1.0/24\n", 2, "a hash holds single values, not 198.18.1.0/24"),
    (
        HEAD.format("lpm saddr") + "198.18.1.1-198.18.1.2\n",
        2,
        "an lpm holds prefixes, and 198.18.1.1-198.18.1.2 is none",
    ),
    (HEAD.format("list saddr,dport") + "198.18.1.1\n", 2, "198.18.1.1 is not one value for each of saddr,dport"),
    *(
        (HEAD.format(f"list {name}") + f"{word}\n", 2, f"{word} is not a value of {name}")
        for name, word in [
            *(("saddr", word) for word in ("198.18.1", "198.018.1.1", "0x1.1.1.1", "1.1.1.256", "1.1.1.1.", "::1")),
            *(("saddr", word) for word in ("198.18.1.1/24", "198.18.1.0/33", "198.18.1.0/", "198.18.1.0/-1", "1/8")),
            *(
                ("saddr", word)
                for word in ("1.1.1.2-1.1.1.1", "1.1.1.1-", "1.1.1.1-1.1.1.2-1.1.1.3", "eth0", "/etc/passwd")
            ),
            *(("dport", word) for word in ("65536", "-1", "053", "0x35", "9-1", "1-", "٥٣", "http", "1/8", "tcp")),
            *(("protocol", word) for word in ("256", "sctp", "udp-tcp")),
        ]
    ),
    ("table eth0 list dport drop\n1\n" * (MAX_TABLES + 1), 2 * MAX_TABLES + 1, f"more than {MAX_TABLES} tables"),
    (
        HEAD.format("list dport") + "1\n" * (MAX_LISTED + 1),
        MAX_LISTED + 2,
        f"more than {MAX_LISTED} entries in lists",
    ),
    (
        HEAD.format("list dport,sport") + "1 1\n" * (MAX_ASIDE + 1),
        MAX_ASIDE + 2,
        f"lists of several fields with more than {MAX_ASIDE} values before an entry's last: the kernel would refuse",
    ),
    (HEAD.format("hash dport") + "1\n" * (MAX_ENTRIES + 1), MAX_ENTRIES + 2, f"more than {MAX_ENTRIES} entries"),
]
ONE_TABLE = "table eth1 list dport drop\n53\n"
LOADER = """CURRENT XDP PROGRAM STATUS:

Interface        Prio  Program name      Mode     ID   Tag               Chain actions
--------------------------------------------------------------------------------------
lo                     <No XDP program loaded!>
eth0                   <No XDP program loaded!>
eth1                   fwlab_ed7e592c    native   12   4c71709884530fb5
"""
SAMPLES = [
    Samples(
        name="xdp-table",
        held="table eth0 hash saddr drop\n198.18.1.1\n",
        accepted=[*TABLES.values()],
        refused=[(text, f"{line}: {fault}") for text, line, fault in REFUSED],
        missing=[
            (ONE_TABLE, {"xdp-loader status": LOADER}, None),
            (ONE_TABLE.replace("53", "54"), {"xdp-loader status": LOADER}, "the program of eth1"),
            (
                f"{ONE_TABLE}table eth0 lpm saddr drop\n198.18.1.1\n",
                {"xdp-loader status": LOADER},
                "the program of eth0",
            ),
        ],
    )
]
