# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset: declarative files, each loaded by its own tool. No shell runs, so a stranger's ruleset is safe to load."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

from fwlab.model.declared import one_of


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


def settings_kinds(kinds: Mapping[str, Any]) -> set[str]:
    """Of a registry, the kinds that set the machine up, or may."""
    return {kind for kind in kinds if kinds[kind].machine_setting or kinds[kind].setting_in}


def rules_kinds(kinds: Mapping[str, Any]) -> set[str]:
    """Of a registry, the kinds that have rules."""
    return {kind for kind in kinds if not kinds[kind].machine_setting}


def _known(settings: bool, name: str, info: ValidationInfo) -> str:
    context: Any = info.context
    kinds = context.get("ruleset_kinds") if isinstance(context, Mapping) else None
    if kinds is None:
        return name
    known = settings_kinds(kinds) if settings else rules_kinds(kinds)
    if name not in known:
        what = "settings" if settings else "rules"
        raise ValueError(f"unknown kind of {what} {name!r}; known kinds: {', '.join(sorted(known))}")
    return name


#: The name of a ruleset kind that sets the machine up, or may. It is checked where the reader gives the registry as
#: context.
SettingsKind = Annotated[str, AfterValidator(partial(_known, True)), Field(json_schema_extra=one_of("settings"))]
#: The same of a kind that has rules.
RulesKind = Annotated[str, AfterValidator(partial(_known, False)), Field(json_schema_extra=one_of("rules"))]
