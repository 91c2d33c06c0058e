# SPDX-License-Identifier: GPL-2.0-or-later
"""nftables, in nft's own language. The language is large, so only what is dangerous is refused."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from fwlab.rulesets.kind import Faults, KernelView, Loader, RulesetKind
from fwlab.rulesets.kinds.limits import MAX_ENTRIES, reached
from fwlab.rulesets.kinds.nft_chains import Chains
from fwlab.rulesets.kinds.nft_devices import Devices
from fwlab.rulesets.kinds.nft_names import Names
from fwlab.rulesets.kinds.nft_tokens import FAMILIES, Reader, Token, read, tokens

#: Hooks of the machine's own packets. What is measured passes through the machine.
OWN_HOOKS = frozenset({"input", "output"})
#: Statements whose texts are free.
_FREE = frozenset({"log", "comment"})
#: (family, table, name); the name of a set or map begins with @.
_Key = tuple[str, str, str]


def reachable_entries(listed: Iterable[dict[str, Any]]) -> int:
    """Count the items of `nft -j list ruleset` that can be reached from a chain with a hook."""
    held: dict[_Key, list[Any]] = {}
    sets: dict[_Key, int] = {}
    hooked: list[_Key] = []
    for kind, found in (pair for item in listed for pair in item.items()):
        if kind == "set":
            sets[_key(found, "@" + found["name"])] = len(found.get("elem", []))
        elif kind == "map":
            held[_key(found, "@" + found["name"])] = found.get("elem", [])
        elif kind == "rule":
            held.setdefault(_key(found, found["chain"]), []).append(found["expr"])
        elif kind == "chain" and found.get("hook") not in (None, *OWN_HOOKS):
            hooked.append(_key(found, found["name"]))
    named = {key: list(_values(inside)) for key, inside in held.items()}
    met = reached(hooked, lambda key: [(*key[:2], one) for one in named.get(key, ()) if isinstance(one, str)])
    elements = sum(len(one) for key in met for one in named.get(key, ()) if isinstance(one, list))
    return elements + sum(len(held.get(key, ())) + sets.get(key, 0) for key in met)


def _key(found: dict[str, Any], name: str) -> _Key:
    return found["family"], found["table"], name


def _values(inside: list[Any]) -> Iterator[str | list[Any]]:
    """The chains, sets and maps that rules or elements name, and the elements of sets without a name."""
    todo = list(inside)
    while todo:
        item = todo.pop()
        if isinstance(item, str) and item.startswith("@"):
            yield item
        elif isinstance(item, list):
            todo += item
        elif isinstance(item, dict):
            for word, value in item.items():
                if word in ("jump", "goto") and isinstance(value, dict) and "target" in value:
                    yield value["target"]
                elif word == "set" and isinstance(value, list):
                    yield value
                    if not isinstance(value[0], list):  # elements of a set lead nowhere, and there may be many
                        continue
                if word not in _FREE:
                    todo.append(value)


#: Statements of a chain that begin with these words are no rules.
_NO_RULE = frozenset({"type", "policy", "comment", "devices", "flags"})
_MAKES = frozenset({"add", "create", "insert"})
_HANDLE = re.compile(r"# handle \d+$")

Table = tuple[str, str]


def declared_tables(text: str) -> tuple[set[Table], Counter[Table]]:
    """The tables that loading this text leaves, and the least number of rules in each. Rules are not counted once the
    text deletes or flushes something."""
    tables: set[Table] = set()
    rules: Counter[Table] = Counter()
    for words, body in _statements(["" if token.quoted else token.text for token in tokens(text)]):
        verb = words[0] if words[0] in _MAKES | {"delete", "destroy", "flush", "replace", "reset"} else ""
        words = words[1:] if verb else words
        kind = words[0] if words else ""
        table = _table(words[1:])
        if verb in ("delete", "destroy", "flush"):
            if kind == "ruleset":
                family = words[1] if len(words) > 1 else None
                tables = {table for table in tables if family not in (None, table[0])}
            elif kind == "table" and verb != "flush":
                tables.discard(table or ("", ""))
            rules.clear()
        elif kind == "table" and table is not None:
            tables.add(table)
            chains = [block for words, block in _statements(body) if words[:1] == ["chain"]]
            rules[table] += sum(map(_count, chains))
        elif kind == "rule" and verb in ("add", "insert") and table is not None:
            rules[table] += 1
        elif kind == "chain" and table is not None:
            rules[table] += _count(body)
    return tables, rules


def listed_tables(text: str) -> Counter[Table]:
    """The tables that `nft -a -t list ruleset` prints, and how many rules each has."""
    rules: Counter[Table] = Counter()
    table: Table = ("", "")
    for line in text.splitlines():
        if line.startswith("table "):
            _, family, name = line.split()[:3]
            table = (family, name)
            rules[table] += 0
        elif (found := _HANDLE.search(line)) and not line[: found.start()].rstrip().endswith("{"):
            rules[table] += 1
    return rules


def _table(words: list[str]) -> Table | None:
    """The table that `inet name ...` or `name ...` (family ip) names."""
    if words and words[0] in FAMILIES:
        return (words[0], words[1]) if len(words) > 1 else None
    return ("ip", words[0]) if words else None


def _count(body: list[str]) -> int:
    """How many rules a chain's block has. The braces of a set inside a rule belong to the rule."""
    return sum(words[0] not in _NO_RULE for words, _ in _statements(body))


def _statements(tokens: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Statements on the outermost level: their words, and the tokens of the block that follows them."""
    words: list[str] = []
    body: list[str] = []
    depth = 0
    for token in [*tokens, "\n"]:
        if depth or token == "{":
            depth += (token == "{") - (token == "}")
            if depth and not (token == "{" and depth == 1):
                body.append(token)
        elif token in (";", "\n"):
            if words:
                yield words, body
            words, body = [], []
        else:
            words.append(token)


#: Commands that read another file or never end.
NFT_REFUSED = {"include": "a ruleset must not include another file", "monitor": "a ruleset must not monitor"}
_SIZE = re.compile(r"(0x[0-9a-fA-F]{1,16}|\d{1,20})[ \t]*")


def validate(lines: list[str], *, devices: bool = True) -> Faults:
    """No word of NFT_REFUSED, large set, other device or host's name; no chains that call each other too often.

    devices  whether those that the file names are the DUT's; where they are made for it, all are allowed
    """
    text = "\n".join(lines)
    if any(word in text for word in NFT_REFUSED):
        for token in tokens(text):
            if token.is_mark(*NFT_REFUSED):
                yield _line(text, token.at), NFT_REFUSED[token.text], f"remove {token.text}"
    every: list[Reader] = [Sizes(), *([Devices()] if devices else []), Names(), Chains()]
    readers = [one for one in every if one.concerned(text)]
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
        return "size" in text

    def take(self, token: Token) -> None:
        size = _SIZE.fullmatch(token.text) if self._declares and not token.quoted else None
        if size is not None:
            self._whole += int(size[1], 0) if size[1][:2] == "0x" else int(size[1])
            if self._whole > MAX_ENTRIES:
                self._found.append((self._at, self._whole))
        self._declares, self._at = token.is_mark("size"), token.at

    def faults(self) -> Iterator[tuple[int, str, str]]:
        """Place, fault and hint where the sets become too large."""
        for at, whole in self._found[:1]:
            what = f"sets of {whole} entries: the DUT has memory for {MAX_ENTRIES}"
            yield at, what, "make the sets smaller, or fewer"


def sent_on_in(text: str) -> str | None:
    """The first line with a statement that sends packets by a link of its own choice: fwd, or dup."""
    before = Token("", 0)
    for token in tokens(text) if "fwd" in text or "dup" in text else ():
        if before.is_mark("fwd", "dup") and token.is_mark("to", "ip", "ip6"):
            return text.split("\n")[_line(text, before.at) - 1].strip()
        before = token
    return None


LIST = "nft -a -t list ruleset"


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """Tables, or rules of a table, that are not listed."""
    tables, rules = declared_tables("\n".join(lines))
    listed = listed_tables(shown.check_output(LIST))
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
        return reachable_entries(json.loads(listed).get("nftables", []))


KIND = RulesetKind(
    name="nft",
    suffix=".nft",
    position=50,
    validate=validate,
    loader=NftLoader,
    missing_from_kernel=missing_from_kernel,
    past_routing=sent_on_in,
    cumulative=True,
    extremes={
        name: f"table inet lab {{\nchain every {{\ntype filter hook forward priority filter; policy {policy};\n}}\n}}\n"
        for name, policy in (("accept-all", "accept"), ("drop-all", "drop"))
    },
)
