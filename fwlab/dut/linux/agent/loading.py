# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads a ruleset: each file by its own tool, timed; a refusal leaves nothing behind.

What a file may say was checked on the host (fwlab/rulesets). No line of it meets a shell.
"""

import base64
import shlex
import subprocess
import zlib

from fwlab.dut.linux.agent import links, start_state
from fwlab.dut.linux.agent.kernel import Refusal, busy_clock

#: Tools that read a whole file on their standard input.
TOOLS = {
    "sysctl": ["sysctl", "-q", "-p", "/dev/stdin"],
    "ipset": ["ipset", "restore"],
    "iptables": ["iptables-legacy-restore"],
    "ip6tables": ["ip6tables-legacy-restore"],
    "iptables-nft": ["iptables-nft-restore"],
    "nft": ["nft", "-f", "-"],
    "tc": ["tc", "-batch", "-"],
    "routes": ["ip", "-batch", "-"],
}
#: The tool for one rule, where a file's lines are its arguments.
ONE_BY_ONE = {
    "ipset": "ipset",
    "iptables": "iptables-legacy",
    "ip6tables": "ip6tables-legacy",
    "iptables-nft": "iptables-nft",
}
cut_off = []


def commands(kind, text):
    """One command for each rule or entry, as an administrator's shell loop would run them."""
    table = "filter"
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith(("#", ":", "COMMIT")):
            continue
        if line.startswith("*"):
            table = line[1:]
        elif kind == "nft":
            yield ["nft", line]
        elif kind == "ipset":
            yield ["ipset", *shlex.split(line)]
        elif kind in ONE_BY_ONE:
            yield [ONE_BY_ONE[kind], "-t", table, *shlex.split(line)]
        else:
            raise Refusal(f"a .{kind} file can only be loaded whole")


def run_tool(name, argv, text=None):
    # A tool may cut its message in the middle of a character.
    done = subprocess.run(argv, input=text, text=True, capture_output=True, errors="replace", check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).strip()
        raise Refusal(f"{name}: {argv[0]} said (exit {done.returncode}): {words[:2000]}")


def calls(name, kind, text, each):
    """What loads a file: (arguments, standard input) of one call after the other. Notes what it will change.

    ethtool and xdp-filter know no file, so each line is a call. The filter's maps hold 10 000 addresses at most.
    """
    if kind == "sysctl":
        start_state.remember_sysctls(name, text)
    elif kind == "ethtool":
        return [(argv, None) for argv in links.link_calls(text)]
    elif kind == "xdp-filter":
        # Native mode wants a NIC that neither merges what it receives nor checks its sums; the link's virtio NICs
        # do neither. The kernel warns that two CPUs' worth of transmit queues are missing: that slows XDP_TX only.
        return [(["xdp-filter", *words], None) for words in links.words(text)]
    elif kind == "routes":
        links.quieten_networkd()
    elif each:
        return [(argv, None) for argv in commands(kind, text)]
    return [(TOOLS[kind], text)]


def apply(files, each):
    """Load the files in order; returns the busy seconds of each."""
    seconds = []
    for item in files:
        name, kind = item["name"], item["kind"]
        if kind not in TOOLS and kind not in ("ethtool", "xdp-filter"):
            raise Refusal(f"{name}: this DUT has no tool for .{kind}")
        start_state.loaded_kinds.add(kind)
        planned = calls(name, kind, item["text"], each)
        before = busy_clock()
        for argv, text in planned:
            run_tool(name, argv, text)
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
            start_state.flush()
            runs.append(apply(files, each))
    except (Refusal, OSError, ValueError, MemoryError) as refusal:
        start_state.reset(request)
        named = str(refusal) if isinstance(refusal, Refusal) else f"{type(refusal).__name__}: {refusal}"
        return {"refused": named}
    return {"seconds": runs}


def confirm(request):
    """Asked after every load, `again` and then once more: whether the host could still reach us, and hear it.

    If it could not, the ruleset is gone.
    """
    reached = not cut_off
    if not request.get("again", False):
        cut_off.clear()
    return {"reached": reached}
