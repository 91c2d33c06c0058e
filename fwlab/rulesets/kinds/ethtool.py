# SPDX-License-Identifier: GPL-2.0-or-later
"""ethtool: settings of the DUT's links, one call a line."""

import re
from collections.abc import Sequence

from fwlab.rulesets.kind import Call, DutShell, Faults, KernelView, Loader, RulesetKind
from fwlab.rulesets.kinds.lines import LINKS, instructions, other_link

_NUMBER = re.compile("[0-9]{1,9}")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
#: Options that a reset can restore, with the names and values that they take: features, rings, coalescing, channels.
OPTIONS = {
    "-K": (_NAME, re.compile("on|off")),
    "-G": (re.compile("rx|tx|rx-mini|rx-jumbo"), _NUMBER),
    "-C": (_NAME, re.compile(r"on|off|[0-9]{1,9}")),
    "-L": (re.compile("rx|tx|other|combined"), _NUMBER),
}
#: Smaller rings run empty or full with any ruleset, so nothing could be measured.
MIN_RING = {("-G", "rx"): 512, ("-G", "tx"): 256}


def validate(lines: list[str]) -> Faults:
    """A line is `eth0 -K gro off`: the device, the option, then pairs of name and value."""
    for number, words in instructions(lines):
        how = "write `eth0 -K gro off`, `eth0 -G rx 512`, `eth0 -C rx-usecs 10` or `eth0 -L combined 2`"
        if words[0] not in LINKS:
            yield number, *other_link(words[0])
        elif len(words) < 4 or len(words) % 2 or words[1] not in OPTIONS:
            yield number, f"{' '.join(words[1:8]) or 'nothing'} is not a link setting that a reset can restore", how
        else:
            name, value = OPTIONS[words[1]]
            for index in range(2, len(words), 2):
                given = words[index : index + 2]
                if not (name.fullmatch(given[0]) and value.fullmatch(given[1])):
                    yield number, f"{' '.join(given)} is not a link setting that a reset can restore", how
                elif (least := MIN_RING.get((words[1], given[0]), 0)) and int(given[1]) < least:
                    what = f"with a ring of {given[1]} nothing can be measured: bursts overflow it"
                    yield number, what, f"write {given[0]} {least} or more"


#: ethtool lists some features by a longer name than the one that sets them.
_LISTED_AS = {
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


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """The first setting that the NIC does not have."""
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    for device, option, *pairs in map(str.split, lines):
        wanted.setdefault((device, option), {}).update(zip(pairs[::2], pairs[1::2], strict=True))
    for (device, option), values in wanted.items():
        # Of rings and channels the maximums are listed first, so that the current values replace them here.
        listed = (line.partition(":") for line in shown.check_output(_show(option, device)).splitlines())
        held = {name.strip().lower(): value.split() for name, _, value in listed if value.split()}
        if not held:
            return f"{device} {option}"
        for name, value in values.items():
            found = held.get(_LISTED_AS.get(name, name) if option == "-K" else name)
            # "off [requested on]": set, but without effect while a feature that it depends on is off.
            if found is not None and value != found[0] and found[1:3] != ["[requested", f"{value}]"]:
                return f"{device} {option} {name} {value} (it is {found[0]})"
    return None


def _show(option: str, device: str) -> str:
    """The command that shows what `option` sets."""
    return f"ethtool {option.lower()} {device}"


class EthtoolLoader(Loader):
    """`before`: settings as they were before the first change, by (device, option)."""

    def __init__(self, machine: DutShell) -> None:
        super().__init__(machine)
        self.before: dict[tuple[str, str], dict[str, str]] = {}

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        planned: list[Call] = []
        for _, (device, option, *rest) in instructions(text.split("\n")):
            if (device, option) not in self.before:
                self.before[device, option] = self._settings(device, option)
            planned.append((["ethtool", option, device, *rest], None))
        return planned

    def undo(self, loaded: bool) -> None:
        for (device, option), before in self.before.items():
            for _ in range(2):  # some settings depend on others, so the second round sets what the first could not
                now = self._settings(device, option)
                for name, value in before.items():
                    if now.get(name) != value:
                        self.machine.run("ethtool", option, device, name, value)
        self.before.clear()

    def _settings(self, device: str, option: str) -> dict[str, str]:
        """The settings that can be changed, under the names that change them: {"tx-checksum-ipv4": "on", ...}."""
        shown = self.machine.run(*_show(option, device).split()).stdout
        if "Current hardware settings:" in shown:
            shown = shown.split("Current hardware settings:")[1]
        found = {}
        for line in shown.splitlines():
            name, _, value = line.partition(":")
            name, value = name.strip().lower().replace(" ", "-"), value.strip()
            wanted = re.search(r"\[requested (on|off)\]", value)
            if wanted:
                value = wanted[1]
            if re.fullmatch(r"on|off|\d+", value):
                found[name] = value
        return found


#: First: a link forgets its filters when it is brought up again.
KIND = RulesetKind(
    name="ethtool",
    suffix=".ethtool",
    position=10,
    validate=validate,
    loader=EthtoolLoader,
    missing_from_kernel=missing_from_kernel,
    machine_setting=True,
)
