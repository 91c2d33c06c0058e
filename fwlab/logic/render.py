# SPDX-License-Identifier: GPL-2.0-or-later
"""Ruleset templates of a lab, rendered on the host. A submission is never rendered."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import jinja2
import jinja2.meta

from fwlab.words.errors import BadInput
from fwlab.words.ruleset import RulesetFile, RulesetKind
from fwlab.words.topology import Topology

TEMPLATE = ".j2"
#: A sysctl can do anything to a machine; rulesets may only set the network's. One by one: what a pattern sets, or
#: a path that climbs out of net, cannot be put back.
NETWORK_SETTING = re.compile(r"net([./][\w-]+)+")
#: The x_tables tools run any program that this option names; getopt also takes its beginning, and -M after letters.
NAMES_A_PROGRAM = re.compile(r"-[46fnvxw]*M.*|--mo(d(p(r(o(be?)?)?)?)?)?(=.*)?")


def addresses(count: int, first: str = "10.0.0.1", step: int = 2) -> list[str]:
    """`count` IPv4 addresses from `first` on, every `step`-th.

    With a step of two no two of them make a prefix, so that no tool can fold them together.
    """
    start = int(ipaddress.IPv4Address(first))
    return [str(ipaddress.IPv4Address(start + step * index)) for index in range(count)]


def render(name: str, text: str, parameters: dict[str, Any], topology: Topology) -> str:
    """Render one template. Raises BadInput naming the file and the unknown word or what it cannot compute."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - rulesets, not HTML
    )
    environment.globals.update(addresses=addresses, links=topology.links)
    try:
        return environment.from_string(text).render(**parameters)
    except (TypeError, ValueError, ArithmeticError) as error:
        # From a call inside the template: an undefined count, an address that is none. Python does not name the word.
        used = jinja2.meta.find_undeclared_variables(environment.parse(text))
        unknown = sorted(used - {*parameters, *environment.globals})
        words = [f"'{word}' is undefined" for word in unknown] or [str(error)]
        raise BadInput(f"{name}: {', '.join(words)}", "give the parameter in lab.yml or mend the template") from error
    except jinja2.TemplateError as error:
        raise BadInput(f"{name}: {error}", "give the parameter in lab.yml or mend the template") from error


def ruleset_file(name: str, text: str) -> RulesetFile:
    """A file by its ending. Raises BadInput where no tool loads such a file."""
    kinds = {f".{kind.value}": kind for kind in RulesetKind if kind is not RulesetKind.PF}
    kind = RulesetKind.PF if name == "pf.conf" else None
    for ending, candidate in kinds.items():
        if name.endswith(ending):
            kind = candidate
    if kind is None:
        raise BadInput(f"{name}: no tool loads such a file", f"use one of: pf.conf {' '.join(f'*{e}' for e in kinds)}")
    if kind is RulesetKind.SYSCTL:
        for number, line in enumerate(text.splitlines(), 1):
            key = line.split("=")[0].strip().lstrip("-").strip()
            if key and key[0] not in "#;" and not NETWORK_SETTING.fullmatch(key):
                raise BadInput(f"{name}:{number}: {key} is not a network setting", "set only net.*")
    if kind in (RulesetKind.IPTABLES, RulesetKind.IPTABLES_NFT):
        for number, line in enumerate(text.splitlines(), 1):
            words = re.sub(r"[\"'\\]", "", line).split()
            if any(NAMES_A_PROGRAM.fullmatch(word) for word in words) and not line.lstrip().startswith("#"):
                raise BadInput(f"{name}:{number}: a ruleset names no program", "remove the option -M (--modprobe)")
    return RulesetFile(name, kind, text)
