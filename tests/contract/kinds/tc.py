# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of tc files."""

from __future__ import annotations

from tests.contract.kinds import ASKS, Samples


def tc(ingress: str) -> dict[str, str]:
    places = {"ingress": ingress, "egress": "", "root": ""}
    return {f"tc filter show dev eth0 {place}": listed for place, listed in places.items()}


FILTER, ALL = (f"filter add dev eth0 ingress {rest}" for rest in ("protocol ip", "matchall"))
HOSTS = ["flower src_ip {} action drop", "flower dst_ip {}", "u32 match ip src {}", "pedit munge ip dst set {}"]
PLACES = [(device, place) for device in ("eth0", "eth1") for place in ("clsact", "ingress", "root")]
DELETES = "".join(f"qdisc del dev {device} {place}\n" for device, place in PLACES)
SAMPLES = [
    Samples(
        name="tc",
        held="filter add dev eth0 ingress matchall\n",
        accepted=[
            "qdisc add dev eth0 clsact",
            "filter add dev eth0 ingress protocol ip prio 1 u32 match ip src 198.18.1.0/24 flowid :1 action drop",
            "filter add dev eth0 ingress protocol ip flower src_ip 198.18.1.1 ip_tos 0x10/0xff action gact drop",
            "filter add dev eth1 egress matchall action police rate 1mbit burst 10kb conform-exceed drop/pipe",
            "class add dev eth1 parent 1: classid 1:1 htb rate 10mbit",
            "actions add action gact drop index 7",
            'filter add dev eth0 ingress protocol ip basic match "ipset(blacklist src)" action drop',
            "filter add dev eth0 ingress protocol ip basic match 'ipset(blacklist src)' action drop",
            "filter add dev eth0 ingress protocol ip flower \\\n  src_ip 198.18.1.1 \\\n  action drop # as in man tc",
            *(f"{FILTER} {rest.format('198.18.0.1')}" for rest in HOSTS),
            "qdisc add dev eth0 root tbf rate 1.5mbit burst 10.5kb latency 50ms",
            'filter add dev eth0 ingress basic match "ipset(web.example.org src)" action drop',
            "filter add dev eth0 ingress flow map key dst and 0xff divisor 16",
            f"{FILTER} u32 match ip src 198.18.0.0/24 action pedit munge ip src set 198.18.0.1",
            f"{FILTER} flower src_ip 2001:2::/48 action drop",
        ],
        refused=[
            *(
                (f"{FILTER} {rest.format('web.example.org')}\n", "1: " + ASKS.format("web.example.org"))
                for rest in HOSTS
            ),
            (f"{FILTER} flower src_ip localhost action drop\n", "1: " + ASKS.format("localhost")),
            (f"{FILTER} u32 match ip dst web action drop\n", "1: " + ASKS.format("web")),
            ("qdisc add \\\ndev eth0 \\\n\\\n root pfifo # \\\nfilter\n", "5: the tc command filter is not allowed"),
            (f"{ALL} object x.o\n", "1: a ruleset must not name a file or a program (object)"),
            ("filter add dev eth0 ingress pinned x\n", "1: a ruleset must not name a file or a program (pinned)"),
            ("filter add dev eth0 ingress a/b/c\n", "1: 'a/b/c' is not allowed"),
            ('filter add dev eth0 ingress match"all"\n', "1: "),
            ('filter add dev eth0 ingress "matchall\n', "1: "),
            ('filter add dev eth0 ingress "matchall action xt" -j DROP\n', "1: a ruleset must not name a file"),
            ('qdisc add dev "eth2" clsact\n', "1: eth2 is not one"),
            (f"{ALL} action x\\\nt\n", "1: a ruleset must not name a file or a program (xt)"),
        ],
        loaded=[("# x\n", [("tc -batch -", "# x\n")])],
        undone=[("tc -force -batch -", DELETES)],
        missing=[
            ("qdisc add dev eth0 clsact\nfilter add dev eth0 ingress matchall\n", tc("filter x"), None),
            ("qdisc add dev eth0 clsact\nfilter add dev eth0 ingress matchall\n", tc(""), "filters on eth0"),
            ("qdisc replace dev eth1 root noqueue\n", {}, None),
        ],
    )
]
