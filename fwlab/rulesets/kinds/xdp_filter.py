# SPDX-License-Identifier: GPL-2.0-or-later
"""xdp-filter: addresses and ports that are dropped before the kernel's stack, one call a line."""

import ipaddress
import re
from collections.abc import Sequence

from fwlab.rulesets.kind import Call, Faults, KernelView, Loader, RulesetKind
from fwlab.rulesets.kinds.lines import LINKS, instructions

#: The folder in which xdp-filter pins its maps. It leaves the folder behind.
PINNED = "/sys/fs/bpf/xdp"
_SIDES = re.compile("src|dst|src,dst|dst,src")
_OPTIONS = {
    "load": {
        ("-m", "--mode"): re.compile("native|skb"),
        ("-p", "--policy"): re.compile("allow|deny"),
        ("-f", "--features"): re.compile("(tcp|udp|ipv4|ipv6|ethernet|all)(,(tcp|udp|ipv4|ipv6|ethernet|all))*"),
    },
    "ip": {("-m", "--mode"): _SIDES},
    "ether": {("-m", "--mode"): _SIDES},
    "port": {("-m", "--mode"): _SIDES, ("-p", "--proto"): re.compile("tcp|udp|tcp,udp|udp,tcp")},
}
_MAC = re.compile("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


HOW = "use load, ip, port or ether with the options of xdp-filter"


def validate(lines: list[str]) -> Faults:
    """A line is arguments of xdp-filter: `load eth0 -m native -p allow -f ipv4,udp`, `ip -m src 198.18.1.1`."""
    for number, (command, *words) in instructions(lines):
        if command not in _OPTIONS or not words:
            yield number, f"the xdp-filter command {command} is not allowed", HOW
            continue
        operands, wrong = _taken_apart(command, words)
        if not operands or not _is_operand(command, operands[0]):
            shown = operands[0] if operands else "nothing"
            yield number, f"{shown} is not an operand of {command}", HOW
        elif wrong or len(operands) > 1:
            yield number, f"{command} does not accept {' '.join(wrong or operands[1:2])}", HOW


def _taken_apart(command: str, words: list[str]) -> tuple[list[str], list[str]]:
    """The operands among these arguments, and the first option that is not accepted, with its value."""
    known = {name: value for names, value in _OPTIONS[command].items() for name in names}
    operands: list[str] = []
    wrong: list[str] = []
    place = 0
    while place < len(words):
        pair = words[place : place + 2]
        if pair[0].startswith("-"):
            if not wrong and (len(pair) < 2 or pair[0] not in known or not known[pair[0]].fullmatch(pair[1])):
                wrong = pair
            place += 2
        else:
            operands.append(pair[0])
            place += 1
    return operands, wrong


def _is_operand(command: str, text: str) -> bool:
    if command == "load":
        return text in LINKS
    if command == "port":
        return re.fullmatch("[1-9][0-9]{0,4}", text) is not None and int(text) < 65536
    if command == "ether":
        return _MAC.fullmatch(text) is not None
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """Addresses that the map does not hold."""
    wanted = set()
    for command, *words in map(str.split, lines):
        operand = _taken_apart(command, words)[0][0]
        wanted.add(str(ipaddress.ip_address(operand)) if command == "ip" else operand.lower())
    return ", ".join(sorted(wanted - set(shown.check_output("xdp-filter status").lower().split()))) or None


class XdpFilterLoader(Loader):
    """Runs xdp-filter once per line."""

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        """One call for each line. The maps of xdp-filter hold 10 000 addresses at most.

        Native mode needs a NIC that neither merges received packets nor checks checksums, as the virtio NICs of the
        links are. The kernel warns that transmit queues for a second CPU are missing; that slows XDP_TX only.
        """
        return [(["xdp-filter", *words], None) for _, words in instructions(text.split("\n"))]

    def undo(self, loaded: bool) -> None:
        if loaded:
            self.machine.run("xdp-filter", "unload", "--all")
            self.machine.run("rm", "-rf", PINNED)


KIND = RulesetKind(
    name="xdp-filter",
    suffix=".xdp-filter",
    position=70,
    validate=validate,
    loader=XdpFilterLoader,
    missing_from_kernel=missing_from_kernel,
)
