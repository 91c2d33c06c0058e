# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset: declarative files, each loaded by its own tool. No shell, so a stranger's is safe to load."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class RulesetKind(StrEnum):
    """By file ending, in loading order: a rule can only name a set that is already there.

    Links come first, since a link that is set anew forgets its filters; settings last, since the kernel has those of
    connection tracking (net.netfilter.*) only once a rule has brought it in.
    """

    ETHTOOL = "ethtool"
    ROUTES = "routes"
    IPSET = "ipset"
    IPTABLES = "iptables"
    IP6TABLES = "ip6tables"
    IPTABLES_NFT = "iptables-nft"
    NFT = "nft"
    TC = "tc"
    XDP_FILTER = "xdp-filter"
    PF = "conf"
    SYSCTL = "sysctl"


#: Settings of the machine, not rules: an exercise takes them only where it says so.
SETTINGS = (RulesetKind.ETHTOOL, RulesetKind.ROUTES, RulesetKind.SYSCTL)


@dataclass(frozen=True)
class RulesetFile:
    name: str
    kind: RulesetKind
    text: str


def in_loading_order(files: list[RulesetFile]) -> list[RulesetFile]:
    order = list(RulesetKind)
    return sorted(files, key=lambda f: (order.index(f.kind), f.name))


def ruleset_hash(files: list[RulesetFile]) -> str:
    """What a result records, so that two results are known to be of the same ruleset."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{len(file.text)}\0{file.text}".encode())
    return digest.hexdigest()[:16]
