# SPDX-License-Identifier: GPL-2.0-or-later
"""Renders the ruleset templates of a lab on the host. A submission is never rendered."""

import ipaddress
import socket
from functools import cache, lru_cache
from typing import Any, Final

import jinja2
import jinja2.meta

from fwlab.model.errors import BadInput
from fwlab.model.ruleset import RulesetFile
from fwlab.model.topology import Topology
from fwlab.rulesets.registry import kind_of, suffixes
from fwlab.rulesets.validation import validate

TEMPLATE = ".j2"
ENVIRONMENT: Final = jinja2.Environment(
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701 - rulesets, not HTML
)


def addresses(count: int, first: str = "10.0.0.1", step: int = 2) -> list[str]:
    """`count` IPv4 addresses from `first` on, every `step`-th.

    With a step of 2 no two of them form a prefix, so no tool can merge them.
    """
    start = int(ipaddress.IPv4Address(first))
    numbers = [start + step * index for index in range(count)]
    if numbers:
        ipaddress.IPv4Address(numbers[-1])  # raises ValueError if the addresses run out
    return [socket.inet_ntoa(number.to_bytes(4, "big")) for number in numbers]  # ten times as fast as ipaddress


def render(name: str, text: str, parameters: dict[str, Any], topology: Topology) -> str:
    """Render one template. Raises BadInput with the name of the file and of the undefined variable, or the error."""
    given = {"addresses": addresses, "links": topology.links, **parameters}
    try:
        return _compiled(text).render(given)
    except (TypeError, ValueError, ArithmeticError) as error:
        # Raised by a call inside the template, for example with an undefined count. Python does not name the variable.
        used = jinja2.meta.find_undeclared_variables(ENVIRONMENT.parse(text))
        unknown = sorted(used - {*given, *ENVIRONMENT.globals})
        words = [f"'{word}' is undefined" for word in unknown] or [str(error)]
        raise BadInput(f"{name}: {', '.join(words)}", "give the parameter in lab.yml or fix the template") from error
    except jinja2.TemplateError as error:
        raise BadInput(f"{name}: {error}", "give the parameter in lab.yml or fix the template") from error


@cache
def _compiled(text: str) -> jinja2.Template:
    """Kept, because a sweep renders one template for each of its parameters."""
    return ENVIRONMENT.from_string(text)


def unvalidated_file(name: str, text: str) -> RulesetFile:
    """A file; its name says of which kind. Raises BadInput if no tool loads it."""
    kind = kind_of(name)
    if kind is None:
        raise BadInput(f"{name}: no tool loads such a file", f"use one of: {suffixes()}")
    return RulesetFile(name, kind.name, text)


@lru_cache(maxsize=8)  # a lab's ruleset is asked for several times, and a list of 265 000 addresses takes a while
def ruleset_file(name: str, text: str) -> RulesetFile:
    """A validated file. Raises BadInput if no tool loads it, or validation fails."""
    file = unvalidated_file(name, text)
    validate(file)
    return file
