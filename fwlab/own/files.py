# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody's own rules: what `iptables-save`, `ip6tables-save`, `nft list ruleset` and `ipset save` print, as files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fwlab.model.errors import BadInput
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import MAX_FILE_BYTES, MAX_FILES, validate

#: Beginnings of lines by which a file's kind is recognised.
_KINDS = {
    "iptables": re.compile(r"^\*(raw|mangle|nat|filter|security)\s*$", re.MULTILINE),
    "nft": re.compile(r"^\s*(table|add table|flush ruleset|define)\b", re.MULTILINE),
    "ipset": re.compile(r"^create \S+ (hash|bitmap|list):", re.MULTILINE),
    "pf": re.compile(r"^(pass|block|scrub|match|set skip|nat on|rdr on|table <)", re.MULTILINE),
}
#: An IPv6 address or protocol in a rule of ip6tables.
_SIX = re.compile(r"^(\[\d+:\d+\] )?-A .*(\s[0-9a-f:]*::[0-9a-f:]*(/\d+)?\s|icmp6|icmpv6|ipv6-icmp)", re.MULTILINE)
HOW = "give what iptables-save, ip6tables-save, nft list ruleset or ipset save prints"


def own_files(paths: Iterable[Path]) -> list[RulesetFile]:
    """These files, and those in these folders, each with its kind. Raises BadInput."""
    found = [own_file(path) for one in paths for path in _files_in(one)]
    if not found:
        raise BadInput("no rules are given", HOW)
    return found


def _files_in(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    inside = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
    if not inside or len(inside) > MAX_FILES:
        raise BadInput(f"{path}: {len(inside)} files; a ruleset has 1 to {MAX_FILES}", HOW)
    yield from inside


def own_file(path: Path) -> RulesetFile:
    """One file. Raises BadInput."""
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", HOW) from error
    if len(data) > MAX_FILE_BYTES:
        raise BadInput(f"{path}: more than {MAX_FILE_BYTES >> 20} MiB", "leave out what need not be loaded")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not text (byte {error.start})", HOW) from error
    file = RulesetFile(path.name, kind_of(path.name, text), text)
    validate(file)
    return file


def kind_of(name: str, text: str) -> str:
    """The kind of rules in this text. Raises BadInput."""
    if not text.strip():
        raise BadInput(f"{name}: the file is empty", HOW)
    kind = next((kind for kind, begins in _KINDS.items() if begins.search(text)), None)
    if kind is None:
        raise BadInput(f"{name}: no tool prints rules like these", HOW)
    if kind == "pf":
        raise BadInput(f"{name}: rules of pf; only those of Linux can be taken here", HOW)
    if kind == "iptables" and not re.search(r"^COMMIT\s*$", text, re.MULTILINE):
        raise BadInput(f"{name}: the end is missing: no COMMIT", "save the rules again, whole")
    return "ip6tables" if kind == "iptables" and ("6" in name.split(".", maxsplit=1)[0] or _SIX.search(text)) else kind


def named(files: Sequence[RulesetFile]) -> str:
    """The files in words."""
    return ", ".join(file.name for file in files)
