# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT's network: links, addresses, routes, rules, queues and sysctls; and how to restore a recorded state.

The state is recorded once after boot and every reset compares with it, so no list of what a ruleset may change is
needed.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator

from fwlab.dut.linux.agent.kernel import Kernel, read

SYSCTLS = "/proc/sys/net"
#: Flags of a link that a ruleset could change. (LOWER_UP and the like change by themselves.)
FLAGS = {"UP", "PROMISC", "ALLMULTI", "NOARP"}
#: Words that the kernel adds to a route while a link is down.
PASSING = re.compile(r" (linkdown|dead|expires \S+)")
FAMILIES = ("-4", "-6")
#: What `ip` shows, for each family, in one run: to start a program takes longer than to list. Of the neighbours only
#: the permanent ones, which the image sets.
SHOWN = "route show table all\nrule show\nneighbour show nud permanent\n"
#: Forms of its lines; all others are routes.
LISTED = {"rule": re.compile(r"\d+:\s"), "neighbour": re.compile(r".* PERMANENT$")}
#: Settings depend on each other ("all" sets those of every device, forwarding resets others), so they are written
#: several times.
ROUNDS = 3
#: {section: sorted lines}
State = dict[str, list[str]]


class Network:
    """The network of this DUT."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def state(self) -> State:
        """Everything but the sysctls."""
        links, addresses = [], []
        for link in json.loads(self._kernel.run("ip", "-j", "-d", "addr", "show").stdout or "[]"):
            name, info = link["ifname"], link.get("linkinfo", {}).get("info_kind", "")
            flags = ",".join(sorted(FLAGS.intersection(link["flags"])))
            program = "xdp" if link.get("xdp") else ""
            words = [name, f"mtu {link['mtu']}", f"txqueuelen {link.get('txqlen', 0)}", flags, info, program]
            links.append(" ".join(word for word in words if word))
            addresses += [
                f"{held['local']}/{held['prefixlen']} dev {name} scope {held['scope']}"
                + " noprefixroute" * bool(held.get("noprefixroute"))  # as systemd gives ::1
                for held in link.get("addr_info", [])
            ]
        state: State = {"link": links, "address": addresses, "route": [], "rule": [], "neighbour": []}
        for family in FAMILIES:
            # What fails, such as all of a family that is off, shows nothing; the rest is listed.
            lines = self._kernel.run("ip", family, "-force", "-batch", "-", text=SHOWN).stdout.splitlines()
            for line in (PASSING.sub("", line).strip() for line in lines):
                section = next((name for name, form in LISTED.items() if form.match(line)), "route")
                state[section].append(f"{family} {line}")
        state["queue"] = [line.strip() for line in self._kernel.run("tc", "qdisc", "show").stdout.splitlines()]
        return {section: sorted(lines) for section, lines in state.items()}

    def restore(self, before: State) -> list[str]:
        """Undo what differs from `before`, as far as `ip` and `tc` can. Returns the differences that remain."""
        now = self.state()
        for _ in range(ROUNDS):
            if now == before:
                return []
            self._restore_once(before, now)
            now = self.state()
        return list(differences(before, now))

    def _restore_once(self, before: State, now: State) -> None:
        run = self._kernel.run
        gone = {section: [line for line in lines if line not in now[section]] for section, lines in before.items()}
        more = {section: [line for line in lines if line not in before[section]] for section, lines in now.items()}
        known = {line.split()[0] for line in before["link"]}
        for line in more["link"]:
            name = line.split()[0]
            if name not in known:
                run("ip", "link", "delete", "dev", name)
            elif line.endswith(" xdp"):
                for mode in ("xdpdrv", "xdpgeneric"):
                    run("ip", "link", "set", "dev", name, mode, "off")
        for line in gone["link"]:
            name, _, mtu, _, queue, *flags = line.split()
            state = "up" if any("UP" in word.split(",") for word in flags) else "down"
            run("ip", "link", "set", "dev", name, "mtu", mtu, "txqueuelen", queue, "promisc", "off", state)
        for line in more["address"]:
            run("ip", "address", "delete", *line.split()[:3])
        for line in gone["address"]:
            # An IPv6 address is added without duplicate address detection, so that it can be used and its routes
            # exist at once. The second command removes that flag.
            nodad = ("nodad",) if ":" in line.split("/")[0] else ()
            run("ip", "address", "add", *line.split(), *nodad)
            if nodad:
                run("ip", "address", "change", *line.split())
        # Routing rules are reported and not undone. Once one was added, this kernel looks up rules for every packet
        # until it boots again, even if the rule is gone: only the saved state is as fast as before.
        for section in ("route", "neighbour"):
            for line in more[section]:
                family, *words = line.split()
                run("ip", family, section, "delete", *_selector(section, words))
            for line in gone[section]:
                family, *words = line.split()
                if not (section == "route" and " proto kernel" in line):  # these come with their address
                    run("ip", family, section, "replace", *_selector(section, words))
        for line in more["queue"]:
            words = line.split()
            if "root" in words:
                run("tc", "qdisc", "delete", "dev", words[words.index("dev") + 1], "root")


def _selector(section: str, words: list[str]) -> list[str]:
    """A listed line in the words that `ip` accepts."""
    return [*words[:-1], "nud", "permanent"] if section == "neighbour" else words


def differences(before: State, now: State) -> Iterator[str]:
    """ "address ADDRESS/LENGTH dev eth0 scope global is missing", "... was added": one line for each difference."""
    for section, lines in before.items():
        for line in lines:
            if line not in now.get(section, ()):
                yield f"{section} {line} is missing"
        for line in now.get(section, ()):
            if line not in lines:
                yield f"{section} {line} was added"


def sysctls() -> dict[str, str]:
    """{path: value} of every network setting that can be both read and written."""
    found = {}
    for folder, _, names in os.walk(SYSCTLS):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError, UnicodeDecodeError):
                if os.stat(path).st_mode & 0o200:
                    found[path] = read(path)
    return found


def restore_sysctls(before: dict[str, str]) -> list[str]:
    """Write every setting that differs from `before`. Returns the paths of those that still do."""
    changed: dict[str, str] = {}
    for _ in range(ROUNDS):
        changed = {path: value for path, value in sysctls().items() if before.get(path, value) != value}
        if not changed:
            return []
        for path in sorted(changed):
            with contextlib.suppress(OSError), open(path, "w") as setting:
                setting.write(before[path])
    return sorted(changed)
