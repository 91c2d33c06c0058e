# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.xdp-filter files."""

from __future__ import annotations

from tests.contract.kinds import Samples

XDP = """Filtered ports:
  53                                       dst,udp          0
Filtered IP addresses:
  2001:2::1                                src              0
Loaded on interfaces:
  eth0 (native mode)                       tcp,udp,ipv6,ipv4,ethernet,allow
"""
SAMPLES = [
    Samples(
        name="xdp-filter",
        held="load eth0\n",
        accepted=[
            "load eth0 -m native -p allow -f ipv4,udp",
            "load eth1 --mode skb",
            "ip 198.18.1.1 -m src",
            "ip 2001:2::1",
            "port 53 -m dst -p udp",
            "ether 52:54:00:12:00:02 -m src",
        ],
        refused=[("load eth0\nether 52:54:00 -m src\n", "2: 52:54:00 is not an operand of ether")],
        loaded=[
            (
                "load eth0 -m native\n\n# one\nip 198.18.1.1 -m src\n",
                [("xdp-filter load eth0 -m native", None), ("xdp-filter ip 198.18.1.1 -m src", None)],
            )
        ],
        undone=[("xdp-filter unload --all", None), ("rm -rf /sys/fs/bpf/xdp", None)],
        missing=[
            ("load eth0 -m native\nip 2001:2:0::1 -m src\nport 53\n", {"xdp-filter status": XDP}, None),
            ("load eth1\nether AA:00:00:00:00:01\n", {"xdp-filter status": XDP}, "aa:00:00:00:00:01, eth1"),
        ],
    )
]
