# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures of the pages: drawn from results/, fresh, readable in both themes, and with words for those who see none."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fwlab.checkout.project import Project
from fwlab.model.errors import BadInput
from tests import ROOT
from tools.pages import all_pages, refresh
from tools.pictures import DARK, LIGHT, pictures_of

PAGES = all_pages(Project(ROOT))
IMAGE = re.compile(r"!\[(?P<words>[^\]]*)\]\((?P<path>[^)\s]+)\)")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> dict[Path, str]:
    return {path: text for page in PAGES for path, text in pictures_of(page).items()}


def images(page: Path) -> list[tuple[str, Path]]:
    found = IMAGE.finditer(page.read_text())
    return [(one["words"], (page.parent / one["path"]).resolve()) for one in found]


def test_a_picture_is_fresh_small_and_has_both_themes(drawn: dict[Path, str]) -> None:
    assert [path.name for path, text in drawn.items() if path.read_text() != text] == [], "stale: make readme"
    for path, text in drawn.items():
        assert len(text) < 200_000, path
        root = ElementTree.fromstring(text)
        style = next(root.iter(f"{SVG}style")).text
        assert f"svg{{color:{LIGHT}}}" in style, path
        assert f"prefers-color-scheme:dark){{svg{{color:{DARK}}}" in style, path
        # Text and axes take that colour; black or white would vanish in one of the themes.
        assert "currentColor" in text, path
        assert len(root.get("aria-label").split()) >= 6, "the words of the page that draws it"
        assert not re.search(r"(fill|stroke): #(000000|ffffff)|<script", text), path


def test_every_picture_is_drawn_and_described(drawn: dict[Path, str]) -> None:
    shown = [image for page in PAGES for image in images(page)]
    assert len(drawn) >= 4
    assert {path for _, path in shown if path.suffix == ".svg"} == set(drawn)
    assert set(ROOT.glob("labs/*/pictures/*")) | set(ROOT.glob("guides/pictures/*")) == set(drawn), (
        "a picture that no page draws"
    )
    for words, path in shown:
        assert len(words.split()) >= 6, f"{path.name}: say what the picture shows"


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ('curves("capacity", "no-such")', "KeyError: 'no-such'"),
        ('curves("no-such", "ipset")', "KeyError: 'no-such'"),
        ('places([("no-such", "a")])', "ValueError: not enough values"),
        ('flames("no-such")', "StopIteration"),
        ('open("/etc/passwd")', "ValueError: no function open"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_named_with_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expression: str, complaint: str
) -> None:
    monkeypatch.chdir(ROOT)
    page = tmp_path / "lab03-ipset" / "README.md"
    page.parent.mkdir()
    page.write_text(f"![It\nbends](pictures/one.svg)\n<!-- drawn: {expression} -->\n")
    with pytest.raises(BadInput, match=rf"^README\.md: pictures/one\.svg: {complaint}") as error:
        pictures_of(page)
    assert error.value.hint == "correct the comment behind it in README.md"


def test_a_stale_picture_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = tmp_path / "labs" / "lab03-ipset" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text('![A set](pictures/set.svg)\n<!-- drawn: curves("capacity", "ipset") -->\n')
    (page.parent / "pictures").mkdir()
    (page.parent / "pictures" / "set.svg").write_text("old")
    assert refresh(Project(tmp_path)) == [page.parent / "pictures" / "set.svg"]
    assert refresh(Project(tmp_path)) == []
