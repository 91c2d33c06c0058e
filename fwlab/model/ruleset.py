# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset: declarative files, each loaded by its own tool. No shell runs, so a stranger's ruleset is safe to load."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class RulesetFile:
    """One file. `kind` is the name of a kind in the registry of fwlab.rulesets."""

    name: str
    kind: str
    text: str


def ruleset_hash(files: Iterable[RulesetFile]) -> str:
    """Recorded in results: equal hashes mean equal rulesets."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{len(file.text)}\0{file.text}".encode())
    return digest.hexdigest()[:16]
