# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the browser tests: Chromium from Debian, and files that are opened from the disk.

Without Chromium and its driver the tests are skipped; in CI they fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.browser.window import Window
from tests.fakes.built_site import build
from tests.fakes.programs import program

#: Seconds that one test may take, also on a busy host.
TIMEOUT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def browser() -> Iterator[Window]:
    window = Window(*(program(name, packages="packages-browser.txt") for name in ("chromium", "chromedriver")))
    yield window
    window.close()


@pytest.fixture
def window(browser: Window) -> Iterator[Window]:
    """A window of a desktop's size, light. Whatever it logs as an error, or loads from elsewhere, fails the test."""
    browser.look()
    yield browser
    assert browser.errors() == []
    assert browser.requests_elsewhere() == []


@pytest.fixture(scope="session")
def axe() -> str | None:
    """axe-core's script; None where it is not installed. `make test-browser` installs it where there is npm."""
    path = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
    return path.read_text() if path.is_file() else None


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("site")
    done = build(ROOT, to)
    assert done.returncode == 0, done.stderr
    return to
