# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT's network as it is: links, addresses, routes, rules, queues and sysctls; and the way back to a noted state.

A note is taken once after boot. Every reset compares with it, so nothing has to be known in advance about what a
ruleset may change.
"""

import contextlib
import json
import os
import re

from fwlab.dut.linux.agent.kernel import quiet, read

SYSCTLS = "/proc/sys/net"
#: What of a link's state a ruleset could change and keep. (LOWER_UP and the like change by themselves.)
FLAGS = {"UP", "PROMISC", "ALLMULTI", "NOARP"}
#: What the kernel adds to a route while a link is down.
PASSING = re.compile(r" (linkdown|dead|expires \S+)")
FAMILIES = ("-4", "-6")
#: What `ip` is asked for, by family. Of the neighbours only those that the image has written down.
SHOWN = {
    "route": ("route", "show", "table", "all"),
    "rule": ("rule", "show"),
    "neighbour": ("neighbour", "show", "nud", "permanent"),
}
#: Settings depend on one another ("all" sets every device's, forwarding resets others), so they are written again.
ROUNDS = 3


def network():
    """{section: sorted lines}: everything but the sysctls."""
    links, addresses = [], []
    for link in json.loads(quiet("ip", "-j", "-d", "addr", "show").stdout or "[]"):
        name, info = link["ifname"], link.get("linkinfo", {}).get("info_kind", "")
        flags = ",".join(sorted(FLAGS.intersection(link["flags"])))
        program = "xdp" if link.get("xdp") else ""
        words = [name, f"mtu {link['mtu']}", f"txqueuelen {link.get('txqlen', 0)}", flags, info, program]
        links.append(" ".join(word for word in words if word))
        addresses += [
            f"{held['local']}/{held['prefixlen']} dev {name} scope {held['scope']}"
            for held in link.get("addr_info", [])
        ]
    state = {"link": links, "address": addresses, **{section: [] for section in SHOWN}}
    for family in FAMILIES:
        for section, words in SHOWN.items():
            lines = quiet("ip", family, *words).stdout.splitlines()
            state[section] += [f"{family} {PASSING.sub('', line).strip()}" for line in lines]
    state["queue"] = [line.strip() for line in quiet("tc", "qdisc", "show").stdout.splitlines()]
    return {section: sorted(lines) for section, lines in state.items()}


def sysctls():
    """{path: value} of every network setting that can be both read and written."""
    found = {}
    for folder, _, names in os.walk(SYSCTLS):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError, UnicodeDecodeError):
                if os.stat(path).st_mode & 0o200:
                    found[path] = read(path)
    return found


def differences(before, now):
    """ "address ADDRESS/LENGTH dev eth0 scope global is missing", "... was added": one line for each."""
    for section, lines in before.items():
        for line in lines:
            if line not in now.get(section, ()):
                yield f"{section} {line} is missing"
        for line in now.get(section, ()):
            if line not in lines:
                yield f"{section} {line} was added"


def put_back_sysctls(before):
    """Write every setting that differs from the note; returns those that still do."""
    for _ in range(ROUNDS):
        changed = {path: value for path, value in sysctls().items() if before.get(path, value) != value}
        if not changed:
            return []
        for path in sorted(changed):
            with contextlib.suppress(OSError), open(path, "w") as setting:
                setting.write(before[path])
    return sorted(changed)


def put_back_network(before):
    """Undo what differs from the note, as far as `ip` can; returns the differences that stay."""
    now = network()
    for _ in range(ROUNDS):
        if now == before:
            return []
        _mend(before, now)
        now = network()
    return list(differences(before, now))


def _mend(before, now):
    gone = {section: [line for line in lines if line not in now[section]] for section, lines in before.items()}
    more = {section: [line for line in lines if line not in before[section]] for section, lines in now.items()}
    known = {line.split()[0] for line in before["link"]}
    for line in more["link"]:
        name = line.split()[0]
        if name not in known:
            quiet("ip", "link", "delete", "dev", name)
        elif line.endswith(" xdp"):
            for mode in ("xdpdrv", "xdpgeneric"):
                quiet("ip", "link", "set", "dev", name, mode, "off")
    for line in gone["link"]:
        name, _, mtu, _, queue, *flags = line.split()
        state = "up" if any("UP" in word.split(",") for word in flags) else "down"
        quiet("ip", "link", "set", "dev", name, "mtu", mtu, "txqueuelen", queue, "promisc", "off", state)
    for line in more["address"]:
        quiet("ip", "address", "delete", *line.split()[:3])
    for line in gone["address"]:
        # Without duplicate address detection: the address is in use, and its routes are there, at once. Then as it was.
        quick = ("nodad",) if ":" in line.split("/")[0] else ()
        quiet("ip", "address", "add", *line.split(), *quick)
        if quick:
            quiet("ip", "address", "change", *line.split())
    for section in ("rule", "route", "neighbour"):
        for line in more[section]:
            family, *words = line.split()
            quiet("ip", family, section, "delete", *_selector(section, words))
        for line in gone[section]:
            family, *words = line.split()
            if section == "route" and " proto kernel" in line:
                continue  # comes with its address
            verb = "add" if section == "rule" else "replace"
            quiet("ip", family, section, verb, *_selector(section, words))
    for line in more["queue"]:
        words = line.split()
        if "root" in words:
            quiet("tc", "qdisc", "delete", "dev", words[words.index("dev") + 1], "root")


def _selector(section, words):
    """What it has listed in the words that `ip` takes: "32766: from all" is "priority 32766 from all"."""
    if section == "rule":
        return ["priority", words[0].rstrip(":"), *words[1:]]
    return [*words[:-1], "nud", "permanent"] if section == "neighbour" else words
