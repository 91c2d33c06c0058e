# SPDX-License-Identifier: GPL-2.0-or-later
"""The window notices what the other tests rely on it to notice."""

from __future__ import annotations

from pathlib import Path

from tests.browser.window import PHONE, Window


def page(folder: Path, body: str) -> Path:
    path = folder / "page.html"
    path.write_text(
        f'<!DOCTYPE html><html><head><meta name="viewport" content="width=device-width"></head>{body}</html>'
    )
    return path


def test_an_error_of_a_script_is_noticed(browser: Window, tmp_path: Path) -> None:
    browser.open(page(tmp_path, "<body><script>throw new Error('made up')</script>"))
    assert any("made up" in error for error in browser.errors())


def test_a_request_to_another_host_is_noticed(browser: Window, tmp_path: Path) -> None:
    browser.open(page(tmp_path, '<body><img src="http://localhost:9/font.woff">'))
    assert browser.requests_elsewhere() == ["http://localhost:9/font.woff"]
    assert browser.errors()  # and it fails, because the browser resolves and reaches no other host


def test_a_page_that_is_too_wide_is_noticed(browser: Window, tmp_path: Path) -> None:
    browser.look(size=PHONE)
    browser.open(page(tmp_path, '<body><div style="width: 800px">wide</div>'))
    assert browser.overflows()
    browser.open(page(tmp_path, "<body><div>narrow</div>"))
    assert not browser.overflows()


def test_what_the_keyboard_does_not_reach_is_noticed(browser: Window, tmp_path: Path) -> None:
    browser.open(page(tmp_path, '<body><span class="no">no</span><a class="yes" href="#">yes</a>'))
    reached = browser.reached_by_tab(3)
    assert "a.yes" in reached
    assert set(reached) <= {"a.yes", "body"}
