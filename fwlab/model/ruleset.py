# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset: declarative files, each loaded by its own tool. No shell runs, so a stranger's ruleset is safe to load."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo


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


def _known(settings: bool, name: str, info: ValidationInfo) -> str:
    context: Any = info.context
    kinds = context.get("ruleset_kinds") if isinstance(context, Mapping) else None
    if kinds is None:
        return name
    sets = {kind for kind in kinds if kinds[kind].machine_setting or kinds[kind].setting_in}
    known = sets if settings else {kind for kind in kinds if not kinds[kind].machine_setting}
    if name not in known:
        what = "settings" if settings else "rules"
        raise ValueError(f"unknown kind of {what} {name!r}; known kinds: {', '.join(sorted(known))}")
    return name


#: The name of a ruleset kind that sets the machine up, or may. It is checked where the reader gives the registry as
#: context.
SettingsKind = Annotated[str, AfterValidator(partial(_known, True))]
#: The same of a kind that has rules.
RulesKind = Annotated[str, AfterValidator(partial(_known, False))]
