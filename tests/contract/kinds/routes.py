# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.routes files."""

from __future__ import annotations

from fwlab.rulesets.kinds.routes import LISTED as ROUTES
from tests.contract.kinds import Samples

SAMPLES = [
    Samples(
        name="routes",
        held="route add 198.19.1.0/24 dev eth1\n",
        accepted=[
            "route add 198.19.7.0/24 via 198.19.0.2 dev eth1",
            "route replace 198.18.3.9 via 198.18.0.2",
            "route add blackhole 198.19.255.0/24",
            "-6 route add 2001:2:0:1301::/64 via 2001:2:0:13::2 dev eth1 metric 5",
            "route add 2001:2::/48 dev eth1 mtu 1400",
            "-4 route add 198.18.0.0/15 dev eth0  # all of it",
            "\t # a comment",
            "",
        ],
        refused=[("# one\nroute add 2001:2:1::/48 dev eth0\n", "2: 2001:2:1::/48 is outside the lab's networks")],
        loaded=[
            (
                "route add 198.19.7.0/24\n -6 route replace 2001:2:0:1301::/64 # one\n",
                [
                    (
                        "ip -batch -",
                        "route add 198.19.7.0/24 proto 200\nroute replace 2001:2:0:1301::/64  proto 200\n",
                    )
                ],
            )
        ],
        undone=[("ip -4 route flush proto 200", None), ("ip -6 route flush proto 200", None)],
        missing=[
            ("route add 198.19.1.0/24 dev eth1\n# x\n", {ROUTES: "1"}, None),
            (
                "route add blackhole 198.19.1.0/24\nroute replace 198.19.1.0/24\n-6 route add 2001:2::/64 dev eth1\n",
                {ROUTES: "1"},
                "1 of 2 routes",
            ),
        ],
    )
]
