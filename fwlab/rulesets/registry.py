# SPDX-License-Identifier: GPL-2.0-or-later
"""All kinds of ruleset files, in loading order."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from fwlab.model.registry import IncompleteKind, Registry, discover
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.kind import RulesetKind, is_update

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


def meant(name: str) -> RulesetKind | None:
    """The kind that a name which no tool loads may be meant for: rules.ipt, rules.nft.txt, nftables.conf, RULES.NFT."""
    low = name.lower()
    ending = low[low.rfind(".") :] if "." in low else ""
    kinds = sorted(KINDS.values(), key=lambda kind: -len(kind.name))
    named = [kind for kind in kinds if re.search(rf"(?<![a-z0-9]){kind.name}(ables)?(?![a-z0-9])", low)]
    begun = [kind for kind in KINDS.values() if len(ending) > 3 and kind.suffix.startswith(ending)]
    alike = [kind.suffix for kind in kinds if kind.suffix[:2] == ending[:2]]
    close = get_close_matches(ending, alike, n=1, cutoff=0.75)
    return next(iter([*named, *begun, *(kind for kind in kinds if kind.suffix in close)]), None)


def files_of(kind: RulesetKind) -> str:
    """The names of a kind's files: *.nft, or pf.conf."""
    return f"*{kind.suffix}" if kind.suffix.startswith(".") else kind.suffix


def suffixes() -> str:
    """File names that can be loaded, those of Linux first: "*.ipset *.nft, or on freebsd: pf.conf"."""
    names: dict[str, list[str]] = {"linux": []}
    for kind in KINDS.values():
        names.setdefault(kind.system, []).append(files_of(kind))
    usual = " ".join(names.pop("linux"))
    return ", or ".join([usual, *(f"on {system}: {' '.join(shown)}" for system, shown in names.items())])


def in_loading_order(files: Iterable[RulesetFile]) -> list[RulesetFile]:
    """Sorted by kind in loading order, then by name; updates last."""
    order = list(KINDS)
    return sorted(files, key=lambda file: (is_update(file.name), order.index(file.kind), file.name))
