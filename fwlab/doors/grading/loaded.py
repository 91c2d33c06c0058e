# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the kernel holds what a file says, as its own tools list it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from ipaddress import ip_address

from testinfra.host import Host

from fwlab.words.ruleset import RulesetFile, RulesetKind

#: The agent marks the routes that a ruleset brings (fwlab/outside/dut/agent/links.py).
ROUTES = "{ ip -4 route show proto 200; ip -6 route show proto 200; } | wc -l"


def missing(dut: Host, file: RulesetFile) -> str | None:
    """What is not there; None where all is, or where nothing lists it (a loading without a complaint is enough)."""
    look = _LOOKS.get(file.kind)
    lines = [line.partition("#")[0].strip() for line in file.text.splitlines()]
    return look(dut, [line for line in lines if line]) if look else None


def _sets(dut: Host, lines: list[str]) -> str | None:
    wanted = {shlex.split(line)[1] for line in lines if line.startswith(("create ", "-N "))}
    absent = wanted - set(dut.check_output("ipset list -n").split())
    return f"sets {', '.join(sorted(absent))}" if absent else None


def _rules(save: str) -> Callable[[Host, list[str]], str | None]:
    def look(dut: Host, lines: list[str]) -> str | None:
        rules = sum(line.startswith(("-A", "-I", "--append", "--insert")) for line in lines)
        listed = int(dut.check_output(f"{save} | grep -c ^-A || true"))
        return f"{rules - listed} of {rules} rules" if listed < rules else None

    return look


def _tables(dut: Host, _lines: list[str]) -> str | None:
    return None if dut.check_output("nft list tables") else "tables"


def _routes(dut: Host, lines: list[str]) -> str | None:
    # One prefix may be named again (replace); its kind and family stand before it.
    before = {"-4", "-6", "route", "add", "replace", "unicast", "blackhole", "unreachable", "prohibit"}
    prefixes = {next(word for word in line.split() if word not in before) for line in lines}
    listed = int(dut.check_output(ROUTES))
    return f"{len(prefixes) - listed} of {len(prefixes)} routes" if listed < len(prefixes) else None


def _filters(dut: Host, lines: list[str]) -> str | None:
    devices = {words[words.index("dev") + 1] for words in map(str.split, lines) if words[0] == "filter"}
    for device in sorted(devices):
        places = ("ingress", "egress", "root")
        if not any(dut.run(f"tc filter show dev {device} {place}").stdout.strip() for place in places):
            return f"filters on {device}"
    return None


def _xdp(dut: Host, lines: list[str]) -> str | None:
    status = set(dut.check_output("xdp-filter status").lower().split())
    wanted = {str(ip_address(words[1])) if words[0] == "ip" else words[1].lower() for words in map(str.split, lines)}
    return ", ".join(sorted(wanted - status)) or None


def _settings(dut: Host, lines: list[str]) -> str | None:
    for line in lines:
        if line.startswith(";"):
            continue
        key, _, value = (part.strip() for part in line.lstrip("-").partition("="))
        held = dut.run("sysctl -n %s", key).stdout
        if value and held.split() != value.split():
            return f"{key} = {value} (it is {held.strip() or 'unknown'})"
    return None


_LOOKS: dict[RulesetKind, Callable[[Host, list[str]], str | None]] = {
    RulesetKind.IPSET: _sets,
    RulesetKind.IPTABLES: _rules("iptables-legacy-save"),
    RulesetKind.IP6TABLES: _rules("ip6tables-legacy-save"),
    RulesetKind.NFT: _tables,
    RulesetKind.ROUTES: _routes,
    RulesetKind.TC: _filters,
    RulesetKind.XDP_FILTER: _xdp,
    RulesetKind.SYSCTL: _settings,
}
