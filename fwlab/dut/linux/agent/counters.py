# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT holds: addresses and rules; connections."""

import json

from fwlab.dut.linux.agent.kernel import modules, quiet, read

PAGE = 4096
#: Bytes of one bucket of the connections' hash: a pointer.
BUCKET = 8


def entries(_request):
    """How many addresses sets and maps hold and how many rules there are."""
    held = {"ipset": 0, "nft_elements": 0, "nft_rules": 0, "iptables_rules": 0}
    if "ip_set" in modules():
        for line in quiet("ipset", "list", "-t").stdout.splitlines():
            if line.startswith("Number of entries:"):
                held["ipset"] += int(line.split(":")[1])
    if "nf_tables" in modules():
        for item in json.loads(quiet("nft", "-j", "list", "ruleset").stdout or "{}").get("nftables", []):
            held["nft_rules"] += "rule" in item
            for kind in ("set", "map"):
                held["nft_elements"] += len(item.get(kind, {}).get("elem", []))
    for family in ("ip", "ip6"):
        if family + "_tables" in modules():
            saved = quiet(family + "tables-legacy-save").stdout.splitlines()
            held["iptables_rules"] += sum(line.startswith("-A") for line in saved)
    return held


def states(_request):
    """The table of connections: what it holds, what it may, and the memory that it takes (bytes)."""
    found = dict.fromkeys(("held", "most", "buckets", "object_bytes", "slab_bytes", "bucket_bytes"), 0)
    if "nf_conntrack" not in modules():
        return found
    path = "/proc/sys/net/netfilter/nf_conntrack_"
    for name, file in (("held", "count"), ("most", "max"), ("buckets", "buckets")):
        found[name] = int(read(path + file))
    found["bucket_bytes"] = -(-found["buckets"] * BUCKET // PAGE) * PAGE
    found["object_bytes"], found["slab_bytes"] = slabs(read("/proc/slabinfo"), "nf_conntrack")
    return found


def slabs(slabinfo, name):
    """Size of one object of this cache, and of all its slabs (slabinfo(5), version 2.1)."""
    for line in slabinfo.splitlines():
        if line.split()[:1] == [name]:
            sizes, _, pages = line.partition("slabdata")
            object_bytes, _, pages_each = sizes.split()[3:6]
            return int(object_bytes), int(pages.split()[1]) * int(pages_each) * PAGE
    return 0, 0
