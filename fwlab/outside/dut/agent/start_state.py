# SPDX-License-Identifier: GPL-2.0-or-later
"""The start state: what the DUT is before a ruleset is loaded, and the way back to it."""

import contextlib
import glob
import itertools
import json
import os
import re
import time

from fwlab.outside.dut.agent import links
from fwlab.outside.dut.agent.kernel import modules, quiet, read

MODULES_AT_BOOT = "/run/fwlab-modules"
OURS = re.compile(
    r"^(ip6?table_|ip6?_tables|arp_?tables|x_tables|xt_|ipt_|ip6t_|nft_|nf_|nfnetlink|ip_set|cls_|act_|em_|sch_)"
)
#: The chains that a table of iptables brings itself.
CHAINS = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "security": ("INPUT", "FORWARD", "OUTPUT"),
}
#: How often modules that do not go are told again.
PATIENCE = 10
changed_sysctls = {}
#: Kinds of files that were loaded since the last flush, and those that an agent before this one may have left behind.
loaded_kinds = set()
left_behind = {"routes", "tc", "xdp-filter"}


def hello(_request):
    """Who this is. The first call after a boot notes which modules belong to the start state."""
    if not os.path.exists(MODULES_AT_BOOT):
        with open(MODULES_AT_BOOT, "w") as note:
            note.write("\n".join(sorted(modules())))
    answer = {"kernel": os.uname().release, "cmdline": read("/proc/cmdline").strip()}
    answer["clocksource"] = read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    try:
        answer["image"] = json.loads(read("/etc/fwlab/image.json"))
    except (OSError, ValueError):
        answer["image"] = {}
    answer["packet_sockets"] = len(read("/proc/net/packet").splitlines()) - 1
    return answer


def remember_sysctls(text):
    for line in text.splitlines():
        key = line.split("=")[0].strip().lstrip("-").strip()
        if not key or key[0] in "#;":
            continue
        path = "/proc/sys/" + key.replace(".", "/")
        if os.path.exists(path):
            changed_sysctls.setdefault(path, read(path))


def flush():
    """Take every rule, set, filter and setting away; leave modules, so that a second load times the load alone."""
    known = modules()
    if "nf_tables" in known:
        quiet("nft", "flush", "ruleset")
    for family, found in itertools.groupby(map(str.split, tables()), key=lambda table: table[0]):
        quiet(family + "-legacy-restore", text="".join(empty_table(name) for _, name in found))
    if "ip_set" in known:
        quiet("ipset", "destroy")
    if "tc" in loaded_kinds | left_behind:
        flush_tc(known)
    if "xdp-filter" in loaded_kinds | left_behind:
        quiet("xdp-filter", "unload", "--all")
    links.restore_links()
    if "routes" in loaded_kinds | left_behind:
        links.restore_routes()
    for path, value in changed_sysctls.items():
        with contextlib.suppress(OSError), open(path, "w") as setting:  # what a module brought may be gone with it
            setting.write(value)
    changed_sysctls.clear()
    loaded_kinds.clear()
    left_behind.clear()


def idle(ahead):
    """Whether what is loaded now, empty as it is, costs a packet nothing that the tables ahead do not."""
    held = any(name == "nf_conntrack" or name.startswith("act_") for name in modules())
    return not held and set(tables()) <= ahead


def tables():
    """Tables of iptables and ip6tables that the kernel has: "iptables raw", ..."""
    for family, names in (("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")):
        with contextlib.suppress(OSError):
            for name in read("/proc/net/" + names).split():
                yield f"{family} {name}"


def empty_table(name):
    """What iptables-restore reads to empty a table: no rule, no chain of one's own, every policy as it was."""
    policies = "".join(f":{chain} ACCEPT\n" for chain in CHAINS.get(name, ()))
    return f"*{name}\n{policies}COMMIT\n"


def flush_tc(known):
    devices = [os.path.basename(path) for path in glob.glob("/sys/class/net/eth*")]
    lines = [f"qdisc del dev {device} {place}" for device in devices for place in ("clsact", "ingress", "root")]
    quiet("tc", "-force", "-batch", "-", text="\n".join(lines) + "\n")
    flush_actions(known)


def flush_actions(known):
    """Actions can stand alone, and keep their module then. None goes while a filter that is on its way out has one."""
    for name in known:
        if name.startswith("act_"):
            quiet("tc", "actions", "flush", "action", name.removeprefix("act_"))


def reset(request):
    """Back to the start state: nothing loaded, and no module that was not there after boot.

    Modules matter: an empty table of iptables is still a hook that every packet visits, and connections are tracked
    until their module goes. With `ahead`, the tables that will be loaded next, modules that do neither may stay: to
    take them out and bring them in again takes longer than many a measurement.
    """
    flush()
    if "ahead" in request and idle(set(request["ahead"])):
        return {"left": []}
    at_boot = set(read(MODULES_AT_BOOT).split())
    before, patience = None, PATIENCE
    while True:
        # The kernel lists the youngest first, and a module is younger than those it needs: one call takes most of
        # them. What is freed only when no CPU can see it any more holds on to some for a moment.
        extra = [name for name in modules() if name not in at_boot and OURS.match(name)]
        if extra == before:
            patience -= 1
            time.sleep(0.02)
        if not extra or not patience:
            return {"left": sorted(extra)}
        before = extra
        flush_actions(extra)
        quiet("rmmod", *extra)
