# SPDX-License-Identifier: GPL-2.0-or-later
"""sysctl: settings of the kernel's network. sysctl could change the whole machine, so only net.* is accepted.

Patterns, paths that leave net, and settings that cannot be read are refused: a reset could not restore them. But one
pattern is common, as in net.ipv4.conf.*.rp_filter: it means the lab's links, `all` and `default`.
"""

import re
from collections.abc import Sequence

from fwlab.rulesets.kind import Call, DutShell, Faults, KernelView, Loader, Refusal, RulesetKind
from fwlab.rulesets.kinds.limits import BUCKET, MAX_BYTES, number
from fwlab.rulesets.kinds.lines import LINKS, other_link

NETWORK_SETTING = re.compile(r"net(\.[\w-]+)++|net(/[\w-]+)++", re.ASCII)
#: Directories of settings.
_FOLDERS = re.compile(
    r"net[./](core|unix|netfilter|bridge|mptcp|ipv4|ipv6)"
    r"|net[./]ipv4[./](conf|neigh|route)([./]\w+)?"
    r"|net[./]ipv6[./](conf|neigh|route|icmp)([./]\w+)?"
    r"|net[./]netfilter[./]nf_log"
)
_UNDER_ROUTE = re.compile(r"net[./]ipv[46][./](route|icmp)[./]\w+")
#: Settings that cannot be read, or not before they are written.
_WRITE_ONLY = re.compile(r"net[./]ipv[46][./]route[./]flush|net[./]ipv6[./]conf[./]\w+[./]stable_secret")
_OF_A_DEVICE = re.compile(r"net[./]ipv[46][./](?:conf|neigh)[./](\w+)[./]\w+")
#: Buckets in one page of memory.
BUCKETS_OF_A_PAGE = 512
_DEVICES = {*LINKS, "all", "default", "lo"}
#: A setting of every device. `forwarding` is none: that of `all` changes the others.
_PATTERN = re.compile(
    r"^([ \t]*-?[ \t]*net([./])ipv[46]\2conf\2)\*(\2(?!forwarding\b)\w+[ \t]*(?:=.*)?)$", re.MULTILINE | re.ASCII
)


def expanded(text: str) -> str:
    """The text with a line for each device that a pattern matches."""
    lines = "\n".join(rf"\g<1>{device}\g<3>" for device in ("all", "default", *LINKS))
    return _PATTERN.sub(lines, text)


def named_in(text: str) -> list[str]:
    """The settings that a file changes, with dots."""
    return [key.replace("/", ".") for key, _, _ in map(_parts, expanded(text).splitlines()) if key]


def _parts(line: str) -> tuple[str, str, str]:
    """Setting, equals sign and value of a line; no setting if it is empty or a comment."""
    key, equals, value = (part.strip() for part in line.partition("="))
    key = key.lstrip("-").strip()
    return ("" if key[:1] in ("#", ";") else key), equals, value


def validate(lines: list[str]) -> Faults:
    """Only settings under net that a reset can restore, and of the test links only."""
    places = ((place, each) for place, line in enumerate(lines, 1) for each in expanded(line).split("\n"))
    for place, line in places:
        key, equals, value = _parts(line)
        if not key:
            continue
        device = _OF_A_DEVICE.fullmatch(key)
        if not NETWORK_SETTING.fullmatch(key):
            yield place, f"{key} is not a network setting", "set only net.*"
        elif _FOLDERS.fullmatch(key) and not _UNDER_ROUTE.fullmatch(key):
            yield place, f"{key} is a group of settings", "set one of those in it"
        elif _WRITE_ONLY.fullmatch(key):
            yield place, f"{key} cannot be read, so it could not be restored", "leave it out"
        elif device and device[1] not in _DEVICES:
            yield place, *other_link(device[1])
        elif not equals:
            yield place, f"{key} has no value", f"write {key} = VALUE"
        elif key.endswith("conntrack_buckets") and (number(value) or 0) * BUCKET > MAX_BYTES:
            what = f"{value} buckets take more than {MAX_BYTES >> 20} MiB of the DUT's memory"
            yield place, what, "make the table smaller"


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """The first setting that the kernel holds with another value."""
    for line in map(str.strip, expanded("\n".join(lines)).splitlines()):
        key, _, value = _parts(line)
        if not key:
            continue
        held = shown.run("sysctl -n %s", key)
        if line.startswith("-") and not held:
            continue
        if (
            key.endswith("conntrack_buckets")
            and 0 <= (number(held.strip()) or 0) - (number(value) or 0) < BUCKETS_OF_A_PAGE
        ):
            continue  # the kernel fills the last page
        if value and list(map(_read, held.split())) != list(map(_read, value.split())):
            return f"{key} = {value} (it is {held.strip() or 'unknown'})"
    return None


def _read(word: str) -> int | str:
    """A word of a value as the kernel reads it: 00 is 0, and 0x10 is 16."""
    found = number(word)
    return word if found is None else found


class SysctlLoader(Loader):
    """`before`: path and value of every setting that a file changes, as it was before the first change."""

    tool = ("sysctl", "-q", "-p", "/dev/stdin")
    changes_sysctls = True

    def __init__(self, machine: DutShell) -> None:
        super().__init__(machine)
        self.before: dict[str, str] = {}

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        lines = []
        for line in text.splitlines(keepends=True):
            paths = {"/proc/sys/" + key.replace(".", "/"): key for key in named_in(line)}
            there = [path for path in paths if self.machine.exists(path)]
            for path in there:
                if path not in self.before:
                    try:
                        self.before[path] = self.machine.read(path)
                    except (OSError, UnicodeDecodeError):
                        what = f"{paths[path]} cannot be read, so it could not be restored"
                        raise Refusal(f"{name}: {what}") from None
            # A minus allows for a kernel without the setting, but `sysctl -p` fails all the same.
            if there or not line.lstrip().startswith("-"):
                lines.append(line)
        return [([*self.tool], "".join(lines))]

    def undo(self, loaded: bool) -> None:
        for path, value in self.before.items():
            self.machine.write(path, value)  # a setting of a module may be gone with it
        self.before.clear()


#: Last, since the kernel has the settings of connection tracking (net.netfilter.*) only once a rule has loaded it.
KIND = RulesetKind(
    name="sysctl",
    suffix=".sysctl",
    position=90,
    validate=validate,
    loader=SysctlLoader,
    missing_from_kernel=missing_from_kernel,
    machine_setting=True,
    named_in=named_in,
    sent=expanded,
    extremes={"drop-all": "net.ipv4.conf.all.forwarding = 0\n"},
)
