# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers inside a page's sentences follow from the expression in the comment after them."""

from pathlib import Path

import pytest

from fwlab.checkout.project import find_project
from fwlab.model.errors import BadInput
from tests import ROOT
from tools.numbers import with_numbers

PAGE = find_project(ROOT).root / "labs/lab03-ipset/README.md"


@pytest.mark.parametrize(
    ("stale", "fresh"),
    [
        ('0.00<!-- = ratio("raw-drop", "raw-drop") -->', "1.00"),
        ('1<!-- = 1e6 / kpps("nft-drop") - cost("nft-drop") -->', "0"),
        ('5.0<!-- = lowest("nft-rules") - cost("nft-rules-16") -->', "0.0"),
        ('7<!-- = forwarded("raw-drop") -->', "0"),
        ('7.0<!-- = load("iptables-rules-1024") / load("iptables-rules-1024") -->', "1.0"),
        ('7<!-- = highest("nft-rules") - cost("nft-rules-16384") -->', "0"),
    ],
)
def test_a_stale_number_is_replaced(stale: str, fresh: str) -> None:
    comment = stale[stale.index("<") :]
    assert with_numbers(f"It costs {stale} per rule.", PAGE) == f"It costs {fresh}{comment} per rule."


def test_a_page_without_figures_needs_no_run(tmp_path: Path) -> None:
    text = "1024 rules <!-- not a figure -->\n"
    assert with_numbers(text, tmp_path / "README.md") == text


@pytest.mark.parametrize("expression", ["cost(", "open('/etc/passwd')", "1 / 0", 'crossover("none")', 'lowest("none")'])
def test_a_wrong_expression_is_named(expression: str) -> None:
    with pytest.raises(BadInput) as error:
        with_numbers(f"1<!-- = {expression} -->", PAGE)
    assert str(error.value).startswith(f"README.md: {expression}: ")


def test_a_case_without_a_figure_is_named() -> None:
    with pytest.raises(BadInput, match="the published run has no figure of no-such-case"):
        with_numbers('1<!-- = cost("no-such-case") -->', PAGE)
