# SPDX-License-Identifier: GPL-2.0-or-later
"""The start state: what the DUT is before a ruleset is loaded, and the way back to it."""

import contextlib
import glob
import itertools
import json
import os
import shutil
import time

from fwlab.dut.linux.agent import links, network_state
from fwlab.dut.linux.agent.kernel import Refusal, modules, quiet, read

#: The start state as it was noted after boot.
NOTE = "/run/fwlab-start-state.json"
#: Console log level, so low that no message of the kernel goes out by the serial line, at which a flooded DUT would
#: spend minutes.
SILENT = "0"
#: Where xdp-filter pins its maps, in folders that it leaves behind.
PINNED = "/sys/fs/bpf/xdp"
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
#: So many differences say enough.
LONGEST = 20
changed_sysctls = {}
#: Kinds of files that were loaded since the last flush, and those that an agent before this one may have left behind.
loaded_kinds = set()
left_behind = {"routes", "tc", "xdp-filter", "sysctl"}
noted = {}
#: Kinds of files that were loaded since the network was last compared with the start state.
touched = set()


def hello(_request):
    """Who this is. The first call after a boot notes the start state."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/printk", "w") as level:
        level.write(SILENT)
    start_state()
    answer = {"kernel": os.uname().release, "cmdline": read("/proc/cmdline").strip()}
    answer["clocksource"] = read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    try:
        answer["image"] = json.loads(read("/etc/fwlab/image.json"))
    except (OSError, ValueError):
        answer["image"] = {}
    answer["packet_sockets"] = len(read("/proc/net/packet").splitlines()) - 1
    return answer


def start_state():
    """The note of the start state: modules, sysctls, network, and how many processes had run out of memory."""
    if not noted:
        try:
            noted.update(json.loads(read(NOTE)))
        except (OSError, ValueError):
            now = {"modules": sorted(modules()), "sysctls": network_state.sysctls()}
            noted.update(now, network=network_state.network(), killed=out_of_memory())
            with open(NOTE + ".part", "w") as note:
                json.dump(noted, note)
            os.replace(NOTE + ".part", NOTE)
    return noted


def out_of_memory():
    """How many processes the kernel has killed for want of memory since boot."""
    return next((int(line.split()[1]) for line in read("/proc/vmstat").splitlines() if line.startswith("oom_kill ")), 0)


def remember_sysctls(name, text):
    """Note what the lines of this file change. Raises Refusal for a setting that could not be put back."""
    for line in text.splitlines():
        key = line.split("=")[0].strip().lstrip("-").strip()
        if not key or key[0] in "#;":
            continue
        path = "/proc/sys/" + key.replace(".", "/")
        if os.path.exists(path) and path not in changed_sysctls:
            try:
                changed_sysctls[path] = read(path)
            except (OSError, UnicodeDecodeError):
                raise Refusal(f"{name}: {key} cannot be read, so it could not be put back") from None


def flush():
    """Take every rule, set, filter and setting away; leave modules, so that a second load times the load alone."""
    known = modules()
    if "nf_tables" in known:
        quiet("nft", "flush", "ruleset")
    for family, found in itertools.groupby(map(str.split, tables()), key=lambda table: table[0]):
        quiet(family + "-legacy-restore", text="".join(empty_table(name) for _, name in found))
    if "tc" in loaded_kinds | left_behind:
        flush_tc(known)
    # After all that can refer to a set. One that is a member of another goes only when that one is empty.
    if "ip_set" in known and quiet("ipset", "destroy").returncode:
        quiet("ipset", "flush")
        quiet("ipset", "destroy")
    if "xdp-filter" in loaded_kinds | left_behind:
        quiet("xdp-filter", "unload", "--all")
        shutil.rmtree(PINNED, ignore_errors=True)
    links.restore_links()
    if "routes" in loaded_kinds | left_behind:
        links.flush_routes()
    for path, value in changed_sysctls.items():
        with contextlib.suppress(OSError), open(path, "w") as setting:  # what a module brought may be gone with it
            setting.write(value)
    changed_sysctls.clear()
    touched.update(loaded_kinds | left_behind)
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
    """Back to the start state; `left` says what still differs from it.

    Modules matter: an empty table of iptables is still a hook that every packet visits, and connections are tracked
    until their module goes. With `ahead`, the tables that will be loaded next, modules that do neither may stay: to
    take them out and bring them in again takes longer than many a measurement.
    """
    flush()
    left = []
    if not ("ahead" in request and idle(set(request["ahead"]))):
        left += [f"module {name}" for name in unload_modules()]
    return {"left": left + compare()}


def unload_modules():
    """Take out every module that was not there at the start; returns those that would not go."""
    at_start = set(start_state()["modules"])
    before, patience = None, PATIENCE
    while True:
        # The kernel lists the youngest first, and a module is younger than those it needs: one call takes most of
        # them. What is freed only when no CPU can see it any more holds on to some for a moment.
        extra = [name for name in modules() if name not in at_start]
        if extra == before:
            patience -= 1
            time.sleep(0.02)
        if not extra or not patience:
            return sorted(extra)
        before = extra
        flush_actions(extra)
        quiet("rmmod", *extra)


def compare():
    """What still differs from the start state, once all that can be put back has been."""
    start, left = start_state(), []
    if "sysctl" in touched:
        left += [f"sysctl {path[len('/proc/sys/') :]}" for path in network_state.put_back_sysctls(start["sysctls"])]
    left += network_state.put_back_network(start["network"])
    if out_of_memory() > start["killed"]:
        left.append("processes killed for want of memory")
    touched.clear()
    return left[:LONGEST]
