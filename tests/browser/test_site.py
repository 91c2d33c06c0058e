# SPDX-License-Identifier: GPL-2.0-or-later
"""The site, opened from the disk as a student would."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.window import DESKTOP, PHONE, Window

LAB = "labs/lab03-ipset/index.html"
PAGES = ["index.html", "guides/course-map.html", "guides/method.html", LAB, "labs/lab05-drop-early/index.html"]


def search(window: Window, words: str) -> list[str]:
    """The addresses of what the search finds."""
    window.wait_for(".md-search__input")
    window.type("/")
    window.type(words)
    return [found.get_attribute("href") or "" for found in window.wait_for(".md-search-result__link")]


def test_the_search_finds_a_word_and_leads_there(window: Window, site: Path) -> None:
    window.open(site / "index.html")
    found = search(window, "conntrack")
    assert [href for href in found if "labs/lab02-conntrack/index.html" in href]
    window.type(Keys.ENTER)
    assert "conntrack" in window.driver.current_url


def test_the_search_finds_nothing_for_a_word_that_is_nowhere(window: Window, site: Path) -> None:
    window.open(site / "index.html")
    window.wait_for(".md-search__input")
    window.type("/")
    window.type("zyzzyva")
    window.wait_for(".md-search-result__meta")
    assert window.shown(".md-search-result__link") == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_lab_shows_its_picture_in_the_readers_scheme(window: Window, site: Path, dark: bool) -> None:
    window.look(dark=dark)
    window.open(site / LAB)
    window.run("document.querySelectorAll('details').forEach(each => each.open = true)")  # answers are folded
    [picture] = window.wait_for('img[src*="pictures/lists"]')
    assert picture.get_attribute("src").endswith("lists.dark.svg" if dark else "lists.light.svg")
    assert window.run("return arguments[0].complete && arguments[0].naturalWidth > 0", picture)
    assert picture.size["width"] > 400
    assert picture.get_attribute("alt").startswith("Capacity by the number of rules")
    background = window.colour("body", "backgroundColor")
    assert max(background) < 80 if dark else min(background) > 240


def test_the_button_changes_the_scheme(window: Window, site: Path) -> None:
    window.open(site / LAB)
    seen = set()
    for _ in range(3):
        [button] = window.wait_for("form[data-md-component=palette] label")
        button.click()
        seen.add(window.run("return document.body.getAttribute('data-md-color-scheme')"))
    assert seen == {"default", "slate"}
    window.run("localStorage.clear()")


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_not_scrolled_sideways(window: Window, site: Path, page: str, size: tuple[int, int]) -> None:
    window.look(size=size)
    window.open(site / page)
    window.wait_for("article h1")
    assert not window.overflows()


def test_a_folded_answer_opens(window: Window, site: Path) -> None:
    window.open(site / LAB)
    [first, *_] = window.wait_for("details summary")
    before = len(window.shown("details p"))
    window.run("arguments[0].scrollIntoView({block: 'center'})", first)
    window.run("arguments[0].focus()", first)
    window.type(Keys.ENTER)
    assert len(window.shown("details p")) > before


def test_links_of_a_lab_lead_to_its_files(window: Window, site: Path) -> None:
    window.open(site / LAB)
    [link, *_] = [a for a in window.wait_for("article a") if a.text == "lab.yml"]
    window.driver.get(link.get_attribute("href"))
    assert "id: lab03-ipset" in window.wait_for("article pre")[0].text


def test_slides_fill_the_window_and_a_printed_page_each(window: Window, site: Path) -> None:
    window.open(site / "labs/lab03-ipset/slides.html")
    heights = [slide.size["height"] for slide in window.shown("section")]
    assert len(heights) > 8
    assert min(heights) >= DESKTOP[1]
    assert window.pdf_pages() == len(heights)
    assert window.shown("section svg")[0].size["width"] > 500
    assert not window.overflows()
    window.look(size=PHONE)
    assert not window.overflows()
