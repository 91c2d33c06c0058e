# SPDX-License-Identifier: GPL-2.0-or-later
"""Links between the pages: each has a target, and the README leads to every guide."""

import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.checkout import PROJECT
from tests.fakes.guide_pages import relative
from tools.pages import all_pages


@pytest.mark.parametrize("page", all_pages(PROJECT), ids=relative)
def test_relative_links_have_a_target(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in _anchors(file), f"{target}#{anchor}"


def _anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub and MkDocs derive them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_guide_is_linked_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert not [page.name for page in (ROOT / "guides").glob("*.md") if f"(guides/{page.name})" not in text]
