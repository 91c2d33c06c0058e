# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of a DUT that a ruleset can change, as the DUT's own tools print it. Does not use the agent."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping

from fwlab.host.ssh import Ssh

#: Commands by part. They load no kernel module: a tool runs only if its part of the kernel is loaded.
LOOKS = {
    "links": "ip -d -o link show",
    "addresses": "ip -o address show",
    # Sorted, because restored routes come last.
    "routes": """for family in -4 -6; do ip $family route show table all; ip $family rule show; done | sort
        ip neighbour show nud permanent | sort""",
    "settings": 'grep -rs "" /proc/sys/net | sort',
    "modules": 'cut -d " " -f 1 /proc/modules | sort',
    "queues": """tc qdisc show
        for device in eth0 eth1; do
            for place in ingress egress ""; do tc filter show dev $device $place; done
            tc class show dev $device
        done
        for block in $(tc qdisc show | sed -n 's/.*ingress_block \\([0-9]*\\).*/\\1/p' | sort -u); do
            tc filter show block $block
        done""",
    "actions": """for action in $(sed -n 's/^act_\\([a-z_]*\\) .*/\\1/p' /proc/modules); do
            tc actions list action $action
        done""",
    "sets": 'if grep -q "^ip_set " /proc/modules; then ipset list; fi',
    "nft": 'if grep -q "^nf_tables " /proc/modules; then nft -j list ruleset; fi',
    "tables": """for family in ip ip6; do
            if grep -qs . /proc/net/${family}_tables_names; then ${family}tables-legacy-save; fi
        done""",
    "xdp": "if ip link show | grep -q xdp; then xdp-filter status; xdp-loader status; fi; find /sys/fs/bpf",
    "offloads": "for device in eth0 eth1; do for shown in -k -g -c -l; do ethtool $shown $device; done; done",
    "steering": 'grep -s "" /sys/class/net/eth[01]/queues/rx-*/rps_*',
    "mounts": "cat /proc/mounts",
    "sockets": "wc -l < /proc/net/packet; wc -l < /proc/net/raw",
}
#: For each kind of ruleset file, the parts that show what it loads.
SEEN_IN = {
    "nft": ("nft",),
    "iptables-nft": ("nft",),
    "iptables": ("tables",),
    "ip6tables": ("tables",),
    "ipset": ("sets",),
    "tc": ("queues", "actions"),
    "routes": ("routes",),
    "ethtool": ("offloads",),
    "rps": ("steering",),
    "xdp-filter": ("xdp", "links"),
    "xdp-table": ("xdp", "links"),
    "sysctl": ("settings",),
}
#: iptables-save prints the time.
_VARIES = re.compile(r"^# (Generated|Completed).*\n", re.MULTILINE)


def snapshot(ssh: Ssh, parts: Iterable[str] = LOOKS) -> dict[str, str]:
    """The output of the tools, by part."""
    command = "\n".join(f"echo '== {part}'\n{LOOKS[part]}" for part in parts)
    shown = _VARIES.sub("", ssh.run(command, timeout=180, check=False))
    found = (part.partition("\n") for part in ("\n" + shown).split("\n== ")[1:])
    return {part: text.strip() for part, _, text in found}


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Added and removed lines of the parts in `after`, each with the name of its part."""
    found = []
    for part, text in after.items():
        lines = difflib.unified_diff(before[part].split("\n"), text.split("\n"), lineterm="", n=0)
        found += [f"{line[0]} {part}: {line[1:]}" for line in lines if re.match(r"[+-](?![+-]{2} $)", line)]
    return found


def held(seen: Mapping[str, str]) -> int:
    """The number of rules, set entries and routes that a ruleset loaded."""
    count = len(re.findall(r"^-A ", seen.get("tables", ""), re.MULTILINE))
    count += sum(map(int, re.findall(r"^Number of entries: (\d+)", seen.get("sets", ""), re.MULTILINE)))
    count += len(re.findall(r"^.* proto 200\b", seen.get("routes", ""), re.MULTILINE))
    for item in json.loads(seen.get("nft", "").strip() or "{}").get("nftables", []):
        count += "rule" in item
        count += sum(len(item.get(kind, {}).get("elem", [])) for kind in ("set", "map"))
    return count
