# SPDX-License-Identifier: GPL-2.0-or-later
"""A beginner's slips in a file are answered with the line, and with what to do."""

import time

import pytest

from fwlab.dut.agent_client import with_line
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import ruleset_file

FILE = RulesetFile("rules.iptables", "iptables", "*raw\n-A PREROUTING -s 1.2.3.4 -j DORP\nCOMMIT\n")
SAID = "rules.iptables: iptables-legacy-restore said (exit 1): "


@pytest.mark.parametrize("words", ["iptables-restore: line 2 failed", "Error occurred at line: 2\nTry ..."])
def test_the_line_behind_a_bare_number_is_shown(words: str) -> None:
    assert with_line(SAID + words, [FILE]) == f"{SAID}{words}\n  rules.iptables:2: -A PREROUTING -s 1.2.3.4 -j DORP"


@pytest.mark.parametrize(
    "said",
    [
        "no number",
        "line 9 failed",
        "line 0 failed",
        "line 4 failed",  # empty
        "line 2 failed: -A PREROUTING -s 1.2.3.4 -j DORP",
    ],
)
def test_any_other_message_stays_as_it_is(said: str) -> None:
    for message in (SAID + said, f"other.iptables: tool said: {said}", said, ""):
        assert with_line(message, [FILE]) == message


def test_a_long_line_is_cut() -> None:
    file = RulesetFile("a.nft", "nft", "x" * 100_000)
    assert len(with_line("a.nft: nft said: line 1 failed", [file])) < 300


NFT = RulesetFile("a.nft", "nft", "add table ip a\nadd element ip a s { " + "1.2.3.4, " * 1000 + "oops }\n")


@pytest.mark.parametrize("column", [1, 25, 9000, 9021])
def test_of_a_long_line_the_part_that_is_wrong_is_shown(column: int) -> None:
    """As nft says it, after the agent has cut its message."""
    line = NFT.text.split("\n")[1]
    said = f"a.nft: nft said (exit 1): /dev/stdin:2:{column}-{column + 3}: Error: syntax error"
    head, part, mark = with_line(f"{said}\n{line}"[:2000], [NFT]).split("\n")
    assert head == said
    assert len(part) < 200
    assert mark.strip() == "^"
    assert part[mark.index("^") :].startswith(line[column - 1 :][:5])


@pytest.mark.parametrize(
    "said",
    [
        "/dev/stdin:2:5-9: Error: syntax error\nadd x\n    ^",  # short
        "/dev/stdin:9:5-9: Error: syntax error\n" + "x" * 500,  # the file has no such line
        "Error: syntax error\n" + "x" * 500,
        "2:5-9 " + "x" * 500,
    ],
)
def test_a_message_without_a_place_in_a_long_line_stays_as_it_is(said: str) -> None:
    assert with_line(f"a.nft: nft said: {said}", [NFT]) == f"a.nft: nft said: {said}"


def test_a_column_behind_the_line_is_no_error() -> None:
    message = "a.nft: nft said: /dev/stdin:2:99999-99999: Error: x\n" + "x" * 500
    assert "oops }" in with_line(message, [NFT])
    assert len(with_line(message, [NFT])) < 500


def test_a_large_file_is_searched_quickly() -> None:
    began = time.monotonic()
    ruleset_file("a.ipset", "create a hash:ip\n" + "add a 10.0.0.1\n" * 265_000)
    assert time.monotonic() - began < 20
