# SPDX-License-Identifier: GPL-2.0-or-later
"""Comments of pages name one function and its arguments; the number before them is what it returns."""

import ast
import re
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.model.errors import BadInput
from tests import ROOT
from tools.calls import call
from tools.numbers import with_numbers
from tools.pages import all_pages

PAGE = ROOT / "labs/lab03-ipset/README.md"


@pytest.mark.parametrize(
    ("stale", "fresh"),
    [
        ('0.00<!-- = ratio("raw-drop", "raw-drop") -->', "1.00"),
        ('7<!-- = forwarded("raw-drop") -->', "0"),
        ('7.0<!-- = load_ratio("iptables-rules-1024", "iptables-rules-1024") -->', "1.0"),
    ],
)
def test_a_stale_number_is_replaced(stale: str, fresh: str) -> None:
    comment = stale[stale.index("<") :]
    assert with_numbers(f"It costs {stale} per rule.", PAGE) == f"It costs {fresh}{comment} per rule."


def test_a_page_without_numbers_needs_no_run(tmp_path: Path) -> None:
    text = "1024 rules <!-- not a number -->\n"
    assert with_numbers(text, tmp_path / "README.md") == text


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ('crossover("none")', "README.md"),
        ('lowest("none")', "'none'"),
        ('each("raw-drop", "raw-drop", 0)', "division by zero"),
        ('cost("no-such-case")', "the published run has no figure of no-such-case"),
        ('busy_at("raw-drop", 0.8)', "busy_at"),
    ],
)
def test_a_wrong_call_is_named(wrong: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=re.escape(complaint)) as error:
        with_numbers(f"1<!-- = {wrong} -->", PAGE)
    assert "README.md" in str(error.value)


def test_of_a_curve_only_loads_that_were_offered_have_a_number() -> None:
    page = ROOT / "labs/lab01-forwarding/README.md"
    assert with_numbers('0<!-- = busy_at("throughput", 0.8) -->', page).startswith("82<")
    with pytest.raises(BadInput, match="busy_at"):
        with_numbers('0<!-- = busy_at("throughput", 0.7) -->', page)


@pytest.mark.parametrize(
    "text",
    [
        "cost(",
        "1 / 0",
        "open('/etc/passwd')",
        "twice(1) + 1",
        "twice(twice(1))",
        "a.twice(1)",
        "twice(**{})",
        "twice(*[1])",
    ],
)
def test_what_is_no_call_with_literals_is_rejected(text: str) -> None:
    assert call("twice(number=2)", {"twice": lambda number: 2 * number}) == 4
    with pytest.raises(ValueError, match=r"."):
        call(text, {"twice": lambda number=0: 2 * number})


def test_blocks_of_cog_only_call_named_functions_with_literals() -> None:
    """`cog.outl(module.function(...))`, after an import from tools; an argument may also be cog.inFile, the page."""
    for page in all_pages(Project(ROOT)):
        for block in re.findall(r"\[\[\[cog\n(.*?)\]\]\]", page.read_text(), re.DOTALL):
            for line in ast.parse(block).body:
                if isinstance(line, ast.ImportFrom):
                    assert line.module == "tools", page
                    continue
                assert isinstance(line, ast.Expr), page
                printed = ast.unparse(line).replace("cog.inFile", "''")
                found = re.fullmatch(r"cog\.outl\(\w+\.(\w+\(.*\))\)", printed, re.DOTALL)
                assert found, (page, printed)
                name = found[1].partition("(")[0]
                assert call(found[1], {name: lambda *_: True})
