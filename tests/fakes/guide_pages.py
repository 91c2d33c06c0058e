# SPDX-License-Identifier: GPL-2.0-or-later
"""Parse Markdown pages: fenced blocks, inline code, and the commands in them.

The convention for fences: `sh` is typed on the host at the top of the checkout, `dut` on the DUT after
`vagrant ssh`, `text` is nothing to type. A fence without a tag could hide a command from the tests, so there is none.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT

FENCE = re.compile(r"^```(?P<tag>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(`+)(?P<code>.+?)\1", re.DOTALL)
#: The first cell of a row in a table of messages (message, cause, next step).
MESSAGE = re.compile(r"^\|[^|\n]*`[^|\n]*(?=\|[^|\n]*\|[^|\n]*\|$)", re.MULTILINE)
#: First words of inline commands; other inline code is a name or a file.
PROGRAMS = ("make", "vagrant", "fwlab", ".venv/bin/fwlab", "pytest", ".venv/bin/pytest")
#: Programs on the DUT, by package; those of Debian's or FreeBSD's base system have none.
DUT_PROGRAMS = {
    "cat": None,
    "conntrack": "conntrack",
    "dmesg": None,
    "echo": None,
    "ethtool": "ethtool",
    "grep": None,
    "head": None,
    "ip": "iproute2",
    "ipset": "ipset",
    "iptables-legacy": "iptables",
    "iptables-legacy-save": "iptables",
    "nft": "nftables",
    "perf": "linux-perf",
    "pfctl": None,
    "tc": "iproute2",
    "xdp-filter": "xdp-tools",
    "xdp-loader": "xdp-tools",
}
#: Words in capitals are placeholders.
PLACEHOLDERS = {
    "LAB": "lab03-ipset",
    "TRAFFIC": "attack",
    "CASE": "raw-drop",
    "EXERCISE": "ex1-one-host",
    "QUESTION": "ex1",
    "NUMBER": "250000",
    "N": "10",
    "DIR": "submissions",
    "FOLDER": "reports/mine",
}
#: Shell keywords that precede a command.
KEYWORDS = {"do", "then", "else", "done", "fi", "sudo"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    tag: str
    body: str


@dataclass(frozen=True)
class Command:
    """A program with its arguments. `where` is page:line; `tag` is the tag of the fence, or `inline`."""

    where: str
    tag: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where} {shlex.join(self.words)}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, m.start()) + 1, m["tag"], m["body"]) for m in FENCE.finditer(text)]


def relative(page: Path) -> str:
    """The page's path in the checkout."""
    return str(page.relative_to(ROOT))


#: A file that is written where it is typed.
HERE = re.compile(r"^cat >\S+ <<'(\w+)'\n.*?^\1$", re.MULTILINE | re.DOTALL)


def commands(page: Path, root: Path) -> list[Command]:
    """All commands of a page: lines of its `sh` and `dut` blocks, and inline code that looks like a command."""
    name = page.relative_to(root)
    found = []
    for block in blocks(page):
        if block.tag in ("sh", "dut"):
            body = HERE.sub(lambda found: "\n" * found[0].count("\n"), block.body)
            for offset, line in enumerate(body.replace("\\\n", "  ").splitlines(), 1):
                found += [Command(f"{name}:{block.line + offset}", block.tag, words) for words in split(line)]
    prose = FENCE.sub(lambda m: "\n" * m[0].count("\n"), page.read_text(encoding="utf-8"))
    prose = MESSAGE.sub("", prose)  # a message may start like a command
    for match in INLINE.finditer(prose):
        code = " ".join(match["code"].split())
        # With an ellipsis or without arguments it is a name, not a command.
        if code.split(" ")[0] in PROGRAMS and " " in code and "…" not in code and "[" not in code:
            line = prose.count("\n", 0, match.start()) + 1
            found += [Command(f"{name}:{line}", "inline", words) for words in split(code)]
    return found


def messages(page: Path) -> list[str]:
    """Messages quoted in the tables of messages: the inline code of the first column."""
    rows = MESSAGE.findall(page.read_text(encoding="utf-8"))
    return [match["code"].strip() for row in rows for match in INLINE.finditer(row)]


def split(line: str) -> list[tuple[str, ...]]:
    """The simple commands of a line of shell, out of pipes, lists, loops and substitutions."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("();|&"):
            found.append([])
        elif set(word) <= set("<>"):
            found.append([">"])  # the next word is a file
        else:
            found[-1].append(word)
    return [words for part in found if (words := _bare(part))]


def _bare(words: list[str]) -> tuple[str, ...]:
    """The words without keywords, leading `NAME=value`, the head of a loop and redirections."""
    while words and (words[0] in KEYWORDS or re.match(r"[A-Z_]+=", words[0])):
        words = words[1:]
    if not words or words[0] in (">", "for", "export"):
        return ()
    return tuple(PLACEHOLDERS.get(word, word) for word in words if word != "$")
