# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the kernel holds what a file says, as its own tools list it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from ipaddress import ip_address

from testinfra.backend.base import CommandResult
from testinfra.host import Host

from fwlab.grading import nft_text
from fwlab.grading.inconclusive import Inconclusive
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile, RulesetKind

#: The agent marks the routes that a ruleset brings (fwlab/dut/linux/agent/links.py).
ROUTES = "{ ip -4 route show proto 200; ip -6 route show proto 200; } | wc -l"
NFT = "nft -a -t list ruleset"


def absent_from(dut: Host, files: Iterable[RulesetFile]) -> str | None:
    """What the DUT does not hold of the first file that it does not hold. Raises Inconclusive if it cannot be asked."""
    for file in files:
        absent = missing(dut, file)
        if absent is not None:
            return f"{file.name}: loaded, but the DUT does not hold: {absent}"
    return None


def missing(dut: Host, file: RulesetFile) -> str | None:
    """What is not there; None where all is, or where nothing lists it (a loading without a complaint is enough)."""
    look = _LOOKS[file.kind]
    lines = [line.partition("#")[0].strip() for line in file.text.splitlines()]
    try:
        return look(_Asked(dut), [line for line in lines if line]) if look is not None else None
    except (LookupError, ValueError, StopIteration):
        return None  # its tool has loaded what this reader does not understand


class _Asked:
    """The DUT, by its tools. A tool that is not reached says nothing about the ruleset."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, command: str, *arguments: str) -> str:
        return self._done(command, *arguments).stdout

    def check_output(self, command: str, *arguments: str) -> str:
        done = self._done(command, *arguments)
        if done.rc:
            words = printable(done.stderr.strip() or f"exit {done.rc}")
            raise Inconclusive(f"the DUT cannot list what it holds: {command.split(maxsplit=1)[0]}: {words}")
        return done.stdout.rstrip()

    def _done(self, command: str, *arguments: str) -> CommandResult:
        try:
            done = self._host.run(command, *arguments)
        except (RuntimeError, OSError) as error:  # Testinfra's, for what ssh could not do
            raise Inconclusive(_LOST) from error
        if done.rc == 255:
            raise Inconclusive(_LOST)
        return done


_LOST = "lost the connection to the DUT before it could be asked what it holds"


def _sets(dut: _Asked, lines: list[str]) -> str | None:
    wanted: set[str] = set()
    for words in map(shlex.split, lines):
        names = [word for word in words[1:] if not word.startswith("-")]
        if words[0] in ("create", "n", "-N"):
            wanted.add(names[0])
        elif words[0] in ("destroy", "x", "-X"):
            wanted = wanted - set(names) if names else set()
        elif words[0] in ("rename", "e", "-E"):
            wanted = wanted - {names[0]} | {names[1]}
    absent = wanted - set(dut.check_output("ipset list -n").split())
    return f"sets {', '.join(sorted(absent))}" if absent else None


def _rules(save: str) -> Callable[[_Asked, list[str]], str | None]:
    def look(dut: _Asked, lines: list[str]) -> str | None:
        if any(_FLUSHES.match(line) for line in lines):
            return None
        rules = sum((_APPENDS.match(line) is not None) - (_DELETES.match(line) is not None) for line in lines)
        listed = int(dut.check_output(f"{save} | grep -c ^-A || true"))
        return f"{rules - listed} of {rules} rules" if listed < rules else None

    return look


#: A file may take back what it said, or what another file did.
_DELETES = re.compile(r"(-D|--delete)\b")
_FLUSHES = re.compile(r"(-F|--flush)\b")
#: With its counters, or without.
_APPENDS = re.compile(r"(\[\d+:\d+\]\s*)?(-A|-I|--append|--insert)\b")


def _tables(dut: _Asked, lines: list[str]) -> str | None:
    tables, rules = nft_text.declared("\n".join(lines))
    listed = nft_text.listed(dut.check_output(NFT))
    absent = sorted(" ".join(table) for table in tables if table not in listed)
    if absent:
        return f"tables {', '.join(absent)}"
    for table, count in sorted(rules.items()):
        if listed[table] < count:
            return f"{count - listed[table]} of {count} rules of table {' '.join(table)}"
    return None


def _routes(dut: _Asked, lines: list[str]) -> str | None:
    # One prefix may be named again (replace); its kind and family stand before it.
    before = {"-4", "-6", "route", "add", "replace", "unicast", "blackhole", "unreachable", "prohibit"}
    prefixes = {next(word for word in line.split() if word not in before) for line in lines}
    listed = int(dut.check_output(ROUTES))
    return f"{len(prefixes) - listed} of {len(prefixes)} routes" if listed < len(prefixes) else None


def _filters(dut: _Asked, lines: list[str]) -> str | None:
    devices = {words[words.index("dev") + 1] for words in map(str.split, lines) if words[0] == "filter"}
    for device in sorted(devices):
        places = ("ingress", "egress", "root")
        if not any(dut.run(f"tc filter show dev {device} {place}").strip() for place in places):
            return f"filters on {device}"
    return None


def _xdp(dut: _Asked, lines: list[str]) -> str | None:
    status = set(dut.check_output("xdp-filter status").lower().split())
    wanted = {str(ip_address(words[1])) if words[0] == "ip" else words[1].lower() for words in map(str.split, lines)}
    return ", ".join(sorted(wanted - status)) or None


def _settings(dut: _Asked, lines: list[str]) -> str | None:
    for line in lines:
        if line.startswith(";"):
            continue
        key, _, value = (part.strip() for part in line.lstrip("-").partition("="))
        held = dut.run("sysctl -n %s", key)
        if line.startswith("-") and not held:  # sysctl passes over it where the kernel has no such setting
            continue
        if value and held.split() != value.split():
            return f"{key} = {value} (it is {held.strip() or 'unknown'})"
    return None


#: As ethtool lists what it takes by a short name; others it lists by the name that it takes.
_FEATURES = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
    "ntuple": "ntuple-filters",
    "rxhash": "receive-hashing",
}
#: How ethtool lists what an option sets. Rings and channels: the second of two lists, the first is what can be.
_SHOWS = {"-K": "-k", "-G": "-g", "-C": "-c", "-L": "-l"}


def _links(dut: _Asked, lines: list[str]) -> str | None:
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    for device, option, *pairs in map(str.split, lines):
        wanted.setdefault((device, option), {}).update(zip(pairs[::2], pairs[1::2], strict=True))
    for (device, option), values in wanted.items():
        shown = dut.check_output(f"ethtool {_SHOWS[option]} {device}")
        held = {
            name.strip().lower(): value.split()
            for name, _, value in (line.partition(":") for line in shown.splitlines())
            if value.split()
        }
        for name, value in values.items():
            found = held.get(_FEATURES.get(name, name) if option == "-K" else name)
            # "off [requested on]": it is set, and has no effect while another that it needs is off.
            if found is not None and value != found[0] and found[1:3] != ["[requested", f"{value}]"]:
                return f"{device} {option} {name} {value} (it is {found[0]})"
    return None


#: How each kind is listed; None where nothing lists it.
_LOOKS: dict[RulesetKind, Callable[[_Asked, list[str]], str | None] | None] = {
    RulesetKind.ETHTOOL: _links,
    RulesetKind.ROUTES: _routes,
    RulesetKind.IPSET: _sets,
    RulesetKind.IPTABLES: _rules("iptables-legacy-save"),
    RulesetKind.IP6TABLES: _rules("ip6tables-legacy-save"),
    RulesetKind.IPTABLES_NFT: _rules("iptables-nft-save"),
    RulesetKind.NFT: _tables,
    RulesetKind.TC: _filters,
    RulesetKind.XDP_FILTER: _xdp,
    RulesetKind.PF: None,  # no DUT of ours runs it
    RulesetKind.SYSCTL: _settings,
}
assert set(_LOOKS) == set(RulesetKind), "every kind has its look, or says that there is none"  # noqa: S101
