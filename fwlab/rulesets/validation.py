# SPDX-License-Identifier: GPL-2.0-or-later
"""The check of one file: which grammar is asked, and in which words it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from fwlab.model.errors import BadInput
from fwlab.model.ruleset import RulesetFile, RulesetKind
from fwlab.rulesets import devices, nftables, routes, sets, settings, tc, xtables

#: (number of the line, what is wrong with it, what to do)
Complaints = Iterator[tuple[int, str, str]]

#: Kinds of which one file adds to what another has loaded, so that the DUT has to carry them together.
_ADDING = (RulesetKind.NFT, RulesetKind.IPSET)
#: What splits lines in one program's eyes and not in another's; none of it belongs into a ruleset.
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

_GRAMMARS: dict[RulesetKind, Callable[[list[str]], Complaints]] = {
    RulesetKind.SYSCTL: settings.sysctl,
    RulesetKind.IPSET: sets.ipset,
    RulesetKind.IPTABLES: xtables.iptables,
    RulesetKind.IP6TABLES: xtables.iptables,
    RulesetKind.IPTABLES_NFT: xtables.iptables,
    RulesetKind.NFT: nftables.nft,
    RulesetKind.TC: tc.tc,
    RulesetKind.ROUTES: routes.routes,
    RulesetKind.ETHTOOL: devices.ethtool,
    RulesetKind.XDP_FILTER: devices.xdp_filter,
}


def refuse_strange(name: str, kind: RulesetKind, text: str) -> None:
    """Raises BadInput with `name` and the line of the first thing that this kind of file may not say."""
    strange = CONTROL.search(text)
    if strange:
        number = text.count("\n", 0, strange.start()) + 1
        raise BadInput(f"{name}:{number}: a control character ({strange[0]!r})", "save it with Unix line ends")
    check = _GRAMMARS.get(kind)
    for number, complaint, hint in check(text.split("\n")) if check else ():
        raise BadInput(f"{name}:{number}: {complaint}", hint)


def refuse_together(files: Sequence[RulesetFile]) -> None:
    """Raises BadInput where files that may be loaded one by one are too much for the DUT together."""
    for kind in _ADDING:
        several = [file for file in files if file.kind is kind]
        text = "\n".join(file.text for file in several)
        for _, complaint, hint in _GRAMMARS[kind](text.split("\n")) if len(several) > 1 else ():
            names = ", ".join(file.name for file in several)
            raise BadInput(f"{names} together: {complaint}", hint)
