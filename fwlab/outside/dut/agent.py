# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on the Linux DUT, as root, with Python's standard library only; the host copies it there.

One request a line on standard input, one answer a line on standard output, both JSON. It is started
before the traffic, because a saturated DUT answers a new SSH connection too late. All times are the
DUT's own clock, which on the virtual testbed counts instructions.
"""

import base64
import glob
import json
import os
import re
import select
import shlex
import subprocess
import sys
import time
import zlib

MODULES_AT_BOOT = "/run/fwlab-modules"
OURS = re.compile(
    r"^(ip6?table_|ip6?_tables|arp_?tables|x_tables|xt_|ipt_|ip6t_|nft_|nf_|nfnetlink|ip_set|cls_|act_|em_|sch_ingress)"
)
TOOLS = {
    "sysctl": ["sysctl", "-q", "-p", "/dev/stdin"],
    "ipset": ["ipset", "restore"],
    "iptables": ["iptables-legacy-restore"],
    "iptables-nft": ["iptables-nft-restore"],
    "nft": ["nft", "-f", "-"],
    "tc": ["tc", "-batch", "-"],
}
CONFIRM_S = 15
changed_sysctls = {}
cut_off = []


class Refusal(Exception):
    pass


def quiet(*argv):
    return subprocess.run(argv, capture_output=True, text=True)


def modules():
    with open("/proc/modules") as lines:
        return {line.split()[0] for line in lines}


def hello(_request):
    """Who this is. The first call after a boot notes which modules belong to the start state."""
    if not os.path.exists(MODULES_AT_BOOT):
        with open(MODULES_AT_BOOT, "w") as note:
            note.write("\n".join(sorted(modules())))
    answer = {"kernel": os.uname().release, "cmdline": open("/proc/cmdline").read().strip()}
    clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    answer["clocksource"] = open(clock).read().strip()
    try:
        with open("/etc/fwlab/image.json") as manifest:
            answer["image"] = json.load(manifest)
    except (OSError, ValueError):
        answer["image"] = {}
    with open("/proc/net/packet") as sockets:
        answer["packet_sockets"] = len(sockets.readlines()) - 1
    return answer


# ---- the start state -----------------------------------------------------------------------------


def flush():
    """Take every rule, set and filter away; leave modules, so that a second load times the load alone."""
    if "nf_tables" in modules():
        quiet("nft", "flush", "ruleset")
    for family, tables in (("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")):
        try:
            names = open("/proc/net/" + tables).read().split()
        except OSError:
            continue
        for name in names:
            empty = f"*{name}\nCOMMIT\n"
            subprocess.run([family + "-legacy-restore"], input=empty, text=True, capture_output=True)
            for chain in ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"):
                quiet(family + "-legacy", "-t", name, "-P", chain, "ACCEPT")
    if "ip_set" in modules():
        quiet("ipset", "destroy")
    for path in glob.glob("/sys/class/net/eth*"):
        device = os.path.basename(path)
        if {"sch_ingress", "cls_u32", "cls_flower", "cls_bpf"} & modules():
            quiet("tc", "qdisc", "del", "dev", device, "clsact")
            quiet("tc", "qdisc", "del", "dev", device, "ingress")
    for path, value in changed_sysctls.items():
        with open(path, "w") as setting:
            setting.write(value)
    changed_sysctls.clear()


def reset(_request):
    """Back to the start state: nothing loaded, and no module that was not there after boot.

    Modules matter: an empty table is still a hook that every packet visits.
    """
    flush()
    at_boot = set(open(MODULES_AT_BOOT).read().split())
    before = None
    while True:
        extra = sorted(name for name in modules() - at_boot if OURS.match(name))
        if not extra or extra == before:
            return {"left": extra}
        before = extra
        for name in extra:
            quiet("rmmod", name)


# ---- loading -------------------------------------------------------------------------------------


def idle_ns():
    """Nanoseconds that the CPU has been idle since boot (kernel: tick_sched.idle_sleeptime)."""
    with open("/proc/timer_list") as lines:
        for line in lines:
            if ".idle_sleeptime" in line:
                return int(line.split(":")[1].split()[0])
    raise Refusal("/proc/timer_list has no idle_sleeptime")


def busy_clock():
    """Seconds of busy time: the clock less the idle time."""
    return time.monotonic() - idle_ns() / 1e9


def remember_sysctls(text):
    for line in text.splitlines():
        key = line.split("=")[0].strip().lstrip("-").strip()
        if not key or key[0] in "#;":
            continue
        path = "/proc/sys/" + key.replace(".", "/")
        if os.path.exists(path):
            changed_sysctls.setdefault(path, open(path).read())


def commands(kind, text):
    """One command for each rule or entry, as an administrator's shell loop would run them."""
    table = "filter"
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith(("#", ":", "COMMIT")):
            continue
        if line.startswith("*"):
            table = line[1:]
        elif kind == "ipset":
            yield ["ipset", *shlex.split(line)]
        elif kind == "nft":
            yield ["nft", line]
        elif kind in ("iptables", "iptables-nft"):
            tool = "iptables-legacy" if kind == "iptables" else "iptables-nft"
            yield [tool, "-t", table, *shlex.split(line)]
        else:
            raise Refusal(f"a .{kind} file can only be loaded whole")


def run_tool(name, argv, text=None):
    done = subprocess.run(argv, input=text, text=True, capture_output=True)
    if done.returncode:
        words = (done.stderr or done.stdout).strip()
        raise Refusal("%s: %s said (exit %d): %s" % (name, argv[0], done.returncode, words[:2000]))


def apply(files, each):
    """Load the files in order; returns the busy seconds of each."""
    seconds = []
    for item in files:
        if item["kind"] not in TOOLS:
            raise Refusal("{}: this DUT has no tool for .{}".format(item["name"], item["kind"]))
        if item["kind"] == "sysctl":
            remember_sysctls(item["text"])
        split = list(commands(item["kind"], item["text"])) if each and item["kind"] != "sysctl" else None
        before = busy_clock()
        if split is None:
            run_tool(item["name"], TOOLS[item["kind"]], item["text"])
        else:
            for argv in split:
                run_tool(item["name"], argv)
        seconds.append(busy_clock() - before)
    return seconds


def load(request):
    """Load rulesets; on a refusal the DUT is back in its start state and the tool's words are the answer."""
    files = request["files"]
    for item in files:
        item["text"] = zlib.decompress(base64.b64decode(item.pop("packed"))).decode()
    each = request.get("each", False)
    try:
        runs = [apply(files, each)]
        for _ in range(request.get("times", 1) - 1):
            flush()
            runs.append(apply(files, each))
    except Refusal as refusal:
        reset(request)
        return {"refused": str(refusal)}
    return {"seconds": runs}


def confirm(_request):
    """Asked after every load: whether the host could still reach us. If it could not, the ruleset is gone."""
    reached = not cut_off
    cut_off.clear()
    return {"reached": reached}


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
    if "ip_tables" in modules():
        saved = quiet("iptables-legacy-save").stdout.splitlines()
        held["iptables_rules"] += sum(line.startswith("-A") for line in saved)
    return held


# ---- measuring -----------------------------------------------------------------------------------


def task(name):
    for path in glob.glob("/proc/[0-9]*/comm"):
        if open(path).read().strip() == name:
            return path.split("/")[2]
    raise Refusal("the DUT runs no %s" % name)


class Counters:
    """Packet counters of the link devices, read through files that stay open."""

    def __init__(self, devices):
        names = [(d, c) for d in devices for c in ("rx_packets", "tx_packets", "rx_dropped")]
        path = "/sys/class/net/{}/statistics/{}"
        self.softirqs = os.open("/proc/%s/schedstat" % task("ksoftirqd/0"), os.O_RDONLY)
        self.files = {"{}.{}".format(*name): os.open(path.format(*name), os.O_RDONLY) for name in names}

    def served(self):
        """Nanoseconds that ksoftirqd has run: under overload all packets are served in it, and nowhere else."""
        return int(os.pread(self.softirqs, 64, 0).split()[0])

    def read(self):
        return {name: int(os.pread(number, 32, 0)) for name, number in self.files.items()}

    def read_at(self):
        """(time in ns, counts), read without the receive work in between.

        The CPU is ours or the receive softirq's, never both: if the reading took longer than usual it
        was interrupted, and is done again.
        """
        best = None
        for _ in range(8):
            before = time.monotonic_ns()
            counts = self.read()
            took = time.monotonic_ns() - before
            if best is None or took < best[0]:
                best = (took, before, counts)
            elif took <= best[0] * 1.2:
                return before, counts
        return best[1], best[2]


def wait_for_packets(counters, device, patience_s):
    start = time.monotonic()
    first = counters.read()[device + ".rx_packets"]
    while counters.read()[device + ".rx_packets"] < first + 64:
        if time.monotonic() - start > patience_s:
            raise Refusal("no packet arrived at %s within %g s" % (device, patience_s))
        time.sleep(0.005)


def window(counters, device, seconds, packets):
    """One trial: counts over at least `seconds` and `packets`, and how long the CPU was idle around them (ns).

    Packets are served in bursts of 64, and a slow ruleset needs a while for one.
    """
    idle_before = idle_ns()
    known = counters.served() + time.process_time_ns()
    begin, first = counters.read_at()
    name = device + ".rx_packets"
    while True:
        time.sleep(seconds)
        end, last = counters.read_at()
        if last[name] - first[name] >= packets or end - begin > 20e9 * seconds:
            break
    known = counters.served() + time.process_time_ns() - known
    counts = {name: last[name] - first[name] for name in last}
    idle = idle_ns() - idle_before
    return {"duration_ns": end - begin, "idle_ns": idle, "other_ns": max(0, end - begin - known), "counts": counts}


def measure(request):
    """`windows` trials in which the CPU was never idle; gives up once more than `most_idle` others were.

    A trial in which it was idle was no overload and says nothing about capacity: it is left out and counted. Those
    beside it are doubtful too, as a ring that is almost empty is served in smaller bursts; so the host gives little
    patience as long as it can slow the DUT further. A trial in which anything else ran for a noticeable time (a
    kernel thread that frees what the ruleset before left behind) is left out and counted as well.
    """
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    try:
        counters = Counters(request["devices"])
        wait_for_packets(counters, request["devices"][0], request["patience_s"])
        time.sleep(request["settle_s"])
        wanted, kept, idle, disturbed = request["windows"], [], [], []
        while len(kept) < wanted and len(idle) <= request["most_idle"] and len(disturbed) <= 5 * wanted:
            trial = window(counters, request["devices"][0], request["window_s"], request["packets"])
            overload = trial["idle_ns"] <= request["idle_share"] * trial["duration_ns"]
            alone = trial["other_ns"] <= request["other_share"] * trial["duration_ns"]
            (idle if not overload else kept if alone else disturbed).append(trial)
        return {"kept": kept, "idle": idle, "disturbed": disturbed}
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def sample(request):
    return Counters(request["devices"]).read()


OPERATIONS = {f.__name__: f for f in (hello, reset, load, confirm, entries, measure, sample)}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = OPERATIONS[request["op"]](request)
        except Exception as error:  # the host turns it into a message; the agent lives on
            answer = {"failed": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        # A ruleset that drops everything drops this conversation too: take it away if the host stays silent.
        if "seconds" in answer and not select.select([sys.stdin], [], [], CONFIRM_S)[0]:
            cut_off.append(True)
            reset(request)


if __name__ == "__main__":
    main()
