# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of every kind of ruleset file, a module for each tool. test_ruleset_kinds.py puts all kinds through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

#: What the DUT's tools print, by command.
Printed = Mapping[str, str]
#: Calls of tools, with what they read.
Calls = Sequence[tuple[str, str | None]]

ASKS = "the name {}: a ruleset must not ask a name server"


@dataclass(frozen=True)
class Samples:
    """Samples of the kind `name`.

    held      a text that the kernel must hold: nothing of it is on a DUT without a ruleset
    accepted  texts, or single lines
    refused   (text, how the message begins behind the file's name: the line, and what is wrong); more of them are in
              tests/data/hostile
    loaded    (text, the calls that load it)
    each      (text, the words of each call that loads it line by line); none: its tool reads it whole, or a line anyway
    undone    the calls that take away what an earlier agent may have left
    missing   (text, what the DUT prints, what it does not hold or None)
    """

    name: str
    held: str
    accepted: Sequence[str] = ()
    refused: Sequence[tuple[str, str]] = ()
    loaded: Sequence[tuple[str, Calls]] = ()
    each: Sequence[tuple[str, Sequence[Sequence[str]]]] = ()
    undone: Calls = ()
    missing: Sequence[tuple[str, Printed, str | None]] = field(default_factory=tuple)


def all_samples() -> list[Samples]:
    """The SAMPLES of every module of this package."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return [samples for module in modules for samples in module.SAMPLES]
