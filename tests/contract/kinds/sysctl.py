# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.sysctl files."""

from __future__ import annotations

from tests.contract.kinds import Samples

BUCKETS = "net.netfilter.nf_conntrack_buckets"
PATTERN = "# mine\n-net.ipv4.conf.*.rp_filter = 1\nnet/ipv6/conf/*/accept_ra=0\n"
DEVICES = ("all", "default", "eth0", "eth1")
OTHER_PATTERNS = [
    "net.ipv4.*.rp_filter=1",
    "net.ipv4.conf.eth*.rp_filter=1",
    "net.*=1",
    "net.ipv4.conf.*=1",
    "net.ipv4.conf.*.*=1",
]
WILD = "net.ipv4.conf.*.rp_filter = 1\n"
ONES = {f"sysctl -n net.ipv4.conf.{device}.rp_filter": "1\n" for device in DEVICES}
SAMPLES = [
    Samples(
        name="sysctl",
        held="net.core.a=1\n",
        accepted=["net.ipv4.ip_forward = 1", "; a comment", PATTERN],
        refused=[
            *((line + "\n", f"1: {line.partition('=')[0]} is not a network setting") for line in OTHER_PATTERNS),
            (
                "net.ipv6.conf.*.stable_secret = 2001:2::1\n",
                "1: net.ipv6.conf.all.stable_secret cannot be read, so it could not be restored",
            ),
        ],
        loaded=[("# x\n", [("sysctl -q -p /dev/stdin", "# x\n")])],
        missing=[
            ("; x=1\n- net.core.a = 1 2\n", {"sysctl -n net.core.a": "1\t2\n"}, None),
            ("net.core.a=1\n", {"sysctl -n net.core.a": "2\n"}, "net.core.a = 1 (it is 2)"),
            ("net.core.a=1\n", {"sysctl -n net.core.a": ""}, "net.core.a = 1 (it is unknown)"),
            (f"{BUCKETS} = 132000\n", {f"sysctl -n {BUCKETS}": "132096\n"}, None),
            (f"{BUCKETS} = 1024\n", {f"sysctl -n {BUCKETS}": "1536\n"}, f"{BUCKETS} = 1024 (it is 1536)"),
            (f"{BUCKETS} = 1024\n", {f"sysctl -n {BUCKETS}": "512\n"}, f"{BUCKETS} = 1024 (it is 512)"),
            ("-net.core.a=1\n", {"sysctl -n net.core.a": ""}, None),
            ("-net.core.a=1\n", {"sysctl -n net.core.a": "2\n"}, "net.core.a = 1 (it is 2)"),
            ("net.core.a = 00\n", {"sysctl -n net.core.a": "0\n"}, None),
            ("net.core.a = 0x10 010\n", {"sysctl -n net.core.a": "16\t8\n"}, None),
            ("net.core.a = 010\n", {"sysctl -n net.core.a": "10\n"}, "net.core.a = 010 (it is 10)"),
            ("net.core.a = reno\n", {"sysctl -n net.core.a": "cubic\n"}, "net.core.a = reno (it is cubic)"),
            (WILD, ONES, None),
            (
                WILD,
                {**ONES, "sysctl -n net.ipv4.conf.eth1.rp_filter": "0\n"},
                "net.ipv4.conf.eth1.rp_filter = 1 (it is 0)",
            ),
        ],
    )
]
