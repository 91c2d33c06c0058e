# SPDX-License-Identifier: GPL-2.0-or-later
"""nftables, in nft's own language. The language is large, so only what is dangerous is refused."""

import json
import re
from collections.abc import Iterator

from fwlab.rulesets.kind import Faults, Loader, RulesetKind, Shown
from fwlab.rulesets.kinds import nft_entries, nft_text
from fwlab.rulesets.kinds.memory import MOST_ENTRIES
from fwlab.rulesets.kinds.nft_chains import Chains
from fwlab.rulesets.kinds.nft_devices import Devices
from fwlab.rulesets.kinds.nft_names import Names
from fwlab.rulesets.kinds.nft_tokens import Reader, Token, read, tokens

#: Commands that read another file or never end.
NFT_REFUSED = {"include": "a ruleset must not include another file", "monitor": "a ruleset must not monitor"}
_SIZE = re.compile(r"(0x[0-9a-fA-F]{1,16}|\d{1,20})[ \t]*")


def validate(lines: list[str]) -> Faults:
    """No word of NFT_REFUSED, large set, other device or host's name; no chains that call each other too often."""
    text = "\n".join(lines)
    if any(word in text for word in NFT_REFUSED):
        for token in tokens(text):
            if token.is_mark(*NFT_REFUSED):
                yield _line(text, token.at), NFT_REFUSED[token.text], f"remove {token.text}"
    readers: list[Reader] = [reader() for reader in (Sizes, Devices, Names, Chains) if reader.concerned(text)]
    for token in read(text) if readers else ():
        for reader in readers:
            reader.take(token)
    for reader in readers:
        for at, fault, hint in reader.faults():
            yield _line(text, at), fault, hint


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class Sizes:
    """Sets that declare a size: the kernel allocates their memory at once."""

    def __init__(self) -> None:
        self._whole = 0
        self._declares = False
        self._at = 0
        self._found: list[tuple[int, int]] = []

    @staticmethod
    def concerned(text: str) -> bool:
        """Whether a text needs reading."""
        return "size" in text

    def take(self, token: Token) -> None:
        """The next token."""
        size = _SIZE.fullmatch(token.text) if self._declares and not token.quoted else None
        if size is not None:
            self._whole += int(size[1], 0) if size[1][:2] == "0x" else int(size[1])
            if self._whole > MOST_ENTRIES:
                self._found.append((self._at, self._whole))
        self._declares, self._at = token.is_mark("size"), token.at

    def faults(self) -> Iterator[tuple[int, str, str]]:
        """Place, fault and hint where the sets become too large."""
        for at, whole in self._found[:1]:
            what = f"sets of {whole} entries: the DUT has memory for {MOST_ENTRIES}"
            yield at, what, "make the sets smaller, or fewer"


LIST = "nft -a -t list ruleset"


def absent(shown: Shown, lines: list[str]) -> str | None:
    """Tables, or rules of a table, that are not listed."""
    tables, rules = nft_text.declared("\n".join(lines))
    listed = nft_text.listed(shown.check_output(LIST))
    missing = sorted(" ".join(table) for table in tables if table not in listed)
    if missing:
        return f"tables {', '.join(missing)}"
    for table, count in sorted(rules.items()):
        if listed[table] < count:
            return f"{count - listed[table]} of {count} rules of table {' '.join(table)}"
    return None


class NftLoader(Loader):
    """Loads a file in one transaction with `nft -f`."""

    tool = ("nft", "-f", "-")

    def one_by_one(self, name: str, text: str) -> Iterator[list[str]]:
        for line in map(str.strip, text.splitlines()):
            if line and not line.startswith("#"):
                yield ["nft", line]

    def undo(self, loaded: bool) -> None:
        """Also removes what iptables-nft has loaded."""
        if "nf_tables" in self.machine.modules():
            self.machine.run("nft", "flush", "ruleset")

    def entries(self) -> int:
        """Rules (those of iptables-nft too) and elements of sets and maps, named or not, that a packet can meet."""
        if "nf_tables" not in self.machine.modules():
            return 0
        listed = self.machine.run("nft", "-j", "list", "ruleset").stdout or "{}"
        return nft_entries.entries(json.loads(listed).get("nftables", []))


KIND = RulesetKind(
    name="nft",
    suffix=".nft",
    position=50,
    validate=validate,
    loader=NftLoader,
    absent=absent,
    cumulative=True,
    extremes={
        name: f"table inet lab {{\nchain every {{\ntype filter hook forward priority filter; policy {policy};\n}}\n}}\n"
        for name, policy in (("accept-all", "accept"), ("drop-all", "drop"))
    },
)
