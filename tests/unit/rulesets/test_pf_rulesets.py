# SPDX-License-Identifier: GPL-2.0-or-later
"""pf.conf as a ruleset kind: ordinary files pass, and the text is read as pfctl reads it. Hostile ones are data."""

from __future__ import annotations

import time

import pytest

from fwlab.host.project import Project, load_topology
from fwlab.rulesets.kinds.pf import _expanded_rules, validate
from fwlab.rulesets.kinds.pf_text import statements
from fwlab.rulesets.render import render, ruleset_file
from tests import ROOT
from tests.corpus import pf_rulesets


def words(text: str) -> list[list[str]]:
    return [[token.text for token in statement] for statement in statements(text)]


@pytest.mark.parametrize("text", pf_rulesets().values(), ids=list(pf_rulesets()))
def test_an_ordinary_file_is_accepted(text: str) -> None:
    assert ruleset_file("pf.conf", text).kind == "pf"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("pass all # comment \\\n still\nblock", [["pass", "all"], ["block"]]),
        ("pass \\\n all\n", [["pass", "all"]]),
        ("pass from {\n a\n b }\nblock\n", [["pass", "from", "{", "a", "b", "}"], ["block"]]),
        ('anchor "a" {\npass\n}\nblock\n', [["anchor", "a", "{"], ["pass"], ["}"], ["block"]]),
        ("anchor a on {\nb }\n", [["anchor", "a", "on", "{", "b", "}"]]),
        ("x = a\npass $x $y\n", [["x", "=", "a"], ["pass", "a"]]),
        ("x = a b\ny = $x c\npass $y\n", [["x", "=", "a", "b"], ["y", "=", "a", "b", "c"], ["pass", "a", "b", "c"]]),
        ("x = '{ a }'\npass $x\n", [["x", "=", "{ a }"], ["pass", "{", "a", "}"]]),
        ("x = a\nx = b\npass $x\n", [["x", "=", "a"], ["x", "=", "b"], ["pass", "b"]]),
        ("label 'one\ntwo'", [["label", "onetwo"]]),
        ("pass it's port!=1", [["pass", "it's", "port", "!", "=", "1"]]),
        ("pass(a)<b>c#d", [["pass", "(", "a", ")", "<", "b", ">", "c"]]),
    ],
)
def test_how_pfctl_reads(text: str, read: list[list[str]]) -> None:
    assert words(text) == read


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        ("pass", 1),
        ("pass from { 1.1.1.1, 1.1.1.2 }", 2),
        ("pass on { vtnet0 vtnet1 } proto { tcp udp } from { <a>, 10.0.0.0/8, !1.1.1.1 } to port { 1, 2 >< 5 }", 24),
        ("table <a> { 1.1.1.1 1.1.1.2 }", 0),
        ("set skip on { lo0 vtnet1 }", 0),
    ],
)
def test_rules_that_lists_make(rule: str, count: int) -> None:
    assert _expanded_rules(next(statements(rule))) == count


def test_a_sweep_is_rendered_from_a_template() -> None:
    """As many rules as the case asks for, none of which pfctl can join with its neighbour."""
    topology = load_topology(Project(ROOT))
    text = "{% for address in addresses(rules) %}\nblock in quick on vtnet0 from {{ address }}\n{% endfor %}\npass\n"
    made = render("pf.conf.j2", text, {"rules": 1000}, topology)
    assert [made.count("block in quick"), made.splitlines()[1]] == [1000, "block in quick on vtnet0 from 10.0.0.3"]
    assert ruleset_file("pf.conf", made).text == made


def test_a_table_of_a_hundred_thousand_addresses_is_validated_in_seconds() -> None:
    addresses = [f"  10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(0, 200_000, 2)]
    began = time.process_time()
    assert list(validate(["table <listed> const {", *addresses, "}", "block in from <listed>"])) == []
    assert time.process_time() - began < 20
