# SPDX-License-Identifier: GPL-2.0-or-later
"""All kinds of ruleset files, in loading order."""

from collections.abc import Iterable

from fwlab.model.registry import IncompleteKind, Registry, discover
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.kind import RulesetKind

GROUP = "fwlab.ruleset_kinds"


def with_distinct_suffixes(kinds: Registry[RulesetKind]) -> Registry[RulesetKind]:
    """The same kinds. Raises IncompleteKind if a file name could belong to two of them."""
    for kind in kinds.values():
        for other in kinds.values():
            if kind is not other and kind.suffix.endswith(other.suffix):
                raise IncompleteKind(f"ruleset kinds {kind.name} and {other.name} both claim *{kind.suffix}")
    return kinds


KINDS = with_distinct_suffixes(discover("ruleset kind", "fwlab.rulesets.kinds", "KIND", GROUP, RulesetKind))


def kind_of(name: str) -> RulesetKind | None:
    """The kind of a file, by its name; None if no tool loads such a file."""
    for kind in KINDS.values():
        if name.endswith(kind.suffix) if kind.suffix.startswith(".") else name == kind.suffix:
            return kind
    return None


def suffixes() -> str:
    """File names that can be loaded, those of Linux first: "*.ipset *.nft, or on freebsd: pf.conf"."""
    names: dict[str, list[str]] = {"linux": []}
    for kind in KINDS.values():
        shown = f"*{kind.suffix}" if kind.suffix.startswith(".") else kind.suffix
        names.setdefault(kind.system, []).append(shown)
    usual = " ".join(names.pop("linux"))
    return ", or ".join([usual, *(f"on {system}: {' '.join(shown)}" for system, shown in names.items())])


def in_loading_order(files: Iterable[RulesetFile]) -> list[RulesetFile]:
    """Sorted by kind in loading order, then by name."""
    order = list(KINDS)
    return sorted(files, key=lambda file: (order.index(file.kind), file.name))
