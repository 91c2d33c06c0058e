# SPDX-License-Identifier: GPL-2.0-or-later
"""Routes to the lab's own networks, one command a line (ip -batch)."""

import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache

from fwlab.rulesets.kind import Call, Faults, KernelView, Loader, RulesetKind
from fwlab.rulesets.kinds.lines import LINKS, instructions

#: The addresses reserved for benchmarks (RFC 2544, RFC 5180).
NETWORKS = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("2001:2::/48"))
#: Matches most of 100 000 lines faster than ipaddress would. Stricter than `ip`, which reads 0x12 and 022 as numbers.
USUAL = re.compile(r"198\.1[89](\.(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){2}(/(1[6-9]|2\d|3[0-2]))?")
#: Routes of a ruleset carry this protocol number, so that they can be found again. Any unused number would do
#: (/etc/iproute2/rt_protos).
PROTOCOL = "200"
#: A line that adds a route, without the family before it and the comment after it. One expression for the whole text,
#: since there may be 100 000 lines.
_ROUTE_LINE = re.compile(r"^[ \t]*(?:-[46][ \t]+)?(route[^#\n]*)(?:#.*)?$", re.MULTILINE)
LISTED = f"{{ ip -4 route show proto {PROTOCOL}; ip -6 route show proto {PROTOCOL}; }} | wc -l"
TYPES = {"unicast", "blackhole", "unreachable", "prohibit"}
HOW = "write `route add PREFIX via ADDRESS dev eth0` or eth1, towards 198.18.0.0/15 or 2001:2::/48"


def validate(lines: list[str]) -> Faults:
    """Only `route add` and `route replace` within the lab's networks."""
    for number, words in instructions(lines):
        complaint = _wrong(words)
        if complaint:
            yield number, complaint, HOW


def _wrong(words: list[str]) -> str | None:
    rest = words[1:] if words[0] in ("-4", "-6") else words
    if rest[:1] != ["route"] or len(rest) < 3 or rest[1] not in ("add", "replace"):
        return f"{' '.join(words[:3])} does not add a route"
    place = 3 if rest[2] in TYPES else 2
    if len(rest) <= place or not _of_the_lab(rest[place], prefix=True):
        return f"{' '.join(rest[place : place + 1]) or 'nothing'} is outside the lab's networks"
    options = rest[place + 1 :]
    if len(options) % 2:
        return f"{options[-1]} has no value"
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option == "via" and _of_the_lab(value, prefix=False):
            continue
        if option == "dev" and value in LINKS:
            continue
        if option in ("metric", "mtu") and re.fullmatch("[0-9]{1,9}", value):
            continue
        return f"{option} {value} is not allowed in a route"
    return None


@lru_cache(4096)
def _address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in NETWORKS)


def _of_the_lab(text: str, *, prefix: bool) -> bool:
    if "%" in text:  # ipaddress accepts a zone, which names a link
        return False
    if not prefix:
        return _address(text)
    if USUAL.fullmatch(text):
        return True
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        return False
    return any(network.version == n.version and network.subnet_of(n) for n in NETWORKS)  # type: ignore[arg-type]


def marked(text: str) -> str:
    """The same lines, each route with our protocol number. `ip` knows the family by the address."""
    return _ROUTE_LINE.sub(rf"\1 proto {PROTOCOL}", text)


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """How many routes the kernel lacks."""
    # `replace` may name a prefix again; family and type come before it.
    before = {"-4", "-6", "route", "add", "replace", *TYPES}
    prefixes = {next(word for word in line.split() if word not in before) for line in lines}
    listed = int(shown.check_output(LISTED))
    return f"{len(prefixes) - listed} of {len(prefixes)} routes" if listed < len(prefixes) else None


class RouteLoader(Loader):
    """Loads a file with `ip -batch`."""

    tool = ("ip", "-batch", "-")

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        # networkd reads every route that is added, which more than doubles the loading time. The links are up, so it
        # has nothing left to do.
        self.machine.run("systemctl", "stop", "systemd-networkd.socket", "systemd-networkd.service")
        return [([*self.tool], text)]

    def undo(self, loaded: bool) -> None:
        """Routes that were replaced come back when the agent restores the start state of the network."""
        if loaded:
            for family in ("-4", "-6"):
                self.machine.run("ip", family, "route", "flush", "proto", PROTOCOL)


KIND = RulesetKind(
    name="routes",
    suffix=".routes",
    position=20,
    validate=validate,
    loader=RouteLoader,
    missing_from_kernel=missing_from_kernel,
    machine_setting=True,
    sent=marked,
    extremes={"drop-all": "route add blackhole 198.19.0.0/17\nroute add blackhole 198.19.128.0/17\n"},
)
