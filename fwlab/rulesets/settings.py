# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of the kernel: sysctl can do anything to a machine; rulesets may only set the network's.

One by one: what a pattern sets, or a path that climbs out of net, cannot be put back. Neither can what cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fwlab.rulesets.lines import LINKS
from fwlab.rulesets.memory import BUCKET, MOST_BYTES, number

NETWORK_SETTING = re.compile(r"net(\.[\w-]+)+|net(/[\w-]+)+", re.ASCII)
#: Folders of the kernel's own that hold settings and are none.
_FOLDERS = re.compile(
    r"net[./](core|unix|netfilter|bridge|mptcp|ipv4|ipv6)"
    r"|net[./]ipv4[./](conf|neigh|route)([./]\w+)?"
    r"|net[./]ipv6[./](conf|neigh|route|icmp)([./]\w+)?"
    r"|net[./]netfilter[./]nf_log"
)
_UNDER_ROUTE = re.compile(r"net[./]ipv[46][./](route|icmp)[./]\w+")
#: What can be written and not read, or not before it was written.
_WRITE_ONLY = re.compile(r"net[./]ipv[46][./]route[./]flush|net[./]ipv6[./]conf[./]\w+[./]stable_secret")
_OF_A_DEVICE = re.compile(r"net[./]ipv[46][./](?:conf|neigh)[./](\w+)[./]\w+")
_DEVICES = {*LINKS, "all", "default", "lo"}


def sysctl(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for place, line in enumerate(lines, 1):
        key, equals, value = (part.strip() for part in line.partition("="))
        key = key.lstrip("-").strip()
        if not key or key[0] in "#;":
            continue
        device = _OF_A_DEVICE.fullmatch(key)
        if not NETWORK_SETTING.fullmatch(key):
            yield place, f"{key} is not a network setting", "set only net.*"
        elif _FOLDERS.fullmatch(key) and not _UNDER_ROUTE.fullmatch(key):
            yield place, f"{key} is a group of settings", "set one of those in it"
        elif _WRITE_ONLY.fullmatch(key):
            yield place, f"{key} cannot be read, so it could not be put back", "leave it out"
        elif device and device[1] not in _DEVICES:
            yield place, f"{device[1]} is none of the DUT's links", f"use {' or '.join(LINKS)}"
        elif not equals:
            yield place, f"{key} is set to nothing", f"write {key} = VALUE"
        elif key.endswith("conntrack_buckets") and (number(value) or 0) * BUCKET > MOST_BYTES:
            what = f"{value} buckets take more than {MOST_BYTES >> 20} MiB of the DUT's memory"
            yield place, what, "make the table smaller"
