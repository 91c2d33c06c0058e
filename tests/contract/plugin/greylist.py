# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset kind from outside fwlab: a list of addresses, one per line, for a tool named greylist."""

from __future__ import annotations

import ipaddress

from fwlab.rulesets.kind import Faults, KernelView, Loader, RulesetKind


def validate(lines: list[str]) -> Faults:
    for number, line in enumerate(lines, 1):
        try:
            if line:
                ipaddress.ip_address(line)
        except ValueError:
            yield number, f"{line} is not an address", "write one address a line"


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    missing = sorted(set(lines) - set(shown.check_output("greylist list").split()))
    return ", ".join(missing) or None


class GreylistLoader(Loader):
    tool = ("greylist", "load")

    def undo(self, loaded: bool) -> None:
        if loaded:
            self.machine.run("greylist", "clear")

    def entries(self) -> int:
        return len(self.machine.run("greylist", "list").stdout.split())


KIND = RulesetKind(
    name="greylist",
    suffix=".greylist",
    position=55,
    validate=validate,
    loader=GreylistLoader,
    missing_from_kernel=missing_from_kernel,
)
