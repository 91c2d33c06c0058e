# SPDX-License-Identifier: GPL-2.0-or-later
"""All that a ruleset can change on a DUT, as its own tools tell it: seen from outside, without the agent."""

from __future__ import annotations

import difflib
import json
import re

from fwlab.outside.ssh import Ssh

#: Looking loads no module: a tool is asked only where its part of the kernel is there.
_LOOK = r"""
there() { grep -q "^$1 " /proc/modules; }
echo "== links"; ip -d -o link show
echo "== addresses"; ip -o address show
echo "== routes"
for family in -4 -6; do ip $family route show table all; ip $family rule show; done
ip neighbour show nud permanent
echo "== settings"; grep -rs "" /proc/sys/net | sort
echo "== modules"; cut -d " " -f 1 /proc/modules | sort
echo "== queues"; tc qdisc show
for device in eth0 eth1; do
    for place in ingress egress root; do tc filter show dev $device $place; done
    tc class show dev $device
done
for block in $(tc qdisc show | sed -n 's/.*ingress_block \([0-9]*\).*/\1/p' | sort -u); do
    tc filter show block $block
done
echo "== actions"
for action in $(sed -n 's/^act_\([a-z_]*\) .*/\1/p' /proc/modules); do tc actions list action $action; done
echo "== sets"; if there ip_set; then ipset list; fi
echo "== nft"; if there nf_tables; then nft -j list ruleset; fi
echo "== tables"
for family in ip ip6; do
    if [ -s /proc/net/${family}_tables_names ]; then ${family}tables-legacy-save; fi
done
echo "== xdp"; if ip link show | grep -q xdp; then xdp-filter status; fi; find /sys/fs/bpf
echo "== offloads"
for device in eth0 eth1; do for option in -k -g -c -l; do ethtool $option $device; done; done
echo "== mounts"; cat /proc/mounts
echo "== sockets"; wc -l < /proc/net/packet; wc -l < /proc/net/raw
"""
#: What changes by itself: a neighbour's state, the time that a table was listed.
_VARIES = re.compile(r"^# (Generated|Completed).*\n|\s+$", re.MULTILINE)


def snapshot(ssh: Ssh) -> str:
    return _VARIES.sub(lambda found: "\n" if found[0].isspace() else "", ssh.run(_LOOK, timeout=120))


def differences(before: str, after: str) -> list[str]:
    """Lines that came and went, with the part that they belong to."""
    found, part = [], ""
    for line in difflib.ndiff(before.split("\n"), after.split("\n")):
        if line[2:].startswith("== "):
            part = line[5:]
        elif line[0] in "+-":
            found.append(f"{line[0]} {part}: {line[2:]}")
    return found


def held(seen: str) -> int:
    """Rules, entries of sets, and routes that a ruleset brought."""
    parts = dict(part.partition("\n")[::2] for part in seen.split("== ")[1:])
    count = len(re.findall(r"^-A ", parts["tables"], re.MULTILINE))
    count += sum(map(int, re.findall(r"^Number of entries: (\d+)", parts["sets"], re.MULTILINE)))
    count += len(re.findall(r"^.* proto 200\b", parts["routes"], re.MULTILINE))
    for item in json.loads(parts["nft"].strip() or "{}").get("nftables", []):
        count += "rule" in item
        count += sum(len(item.get(kind, {}).get("elem", [])) for kind in ("set", "map"))
    return count
