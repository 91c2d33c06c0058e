# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab web` in Chromium: an exercise from prediction to reason, in small and large windows, by keyboard.

Nothing runs that a file of the student has, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from fwlab.student.predictions import read_predictions
from fwlab.student.progress import read_progress
from tests import ROOT
from tests.browser.window import PATIENCE_S, Window
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, LAB

SMALL, LARGE = (360, 740), (3840, 2160)
SERVER = """
import signal
from pathlib import Path
from fwlab.checkout.project import Project
from fwlab.web import server
from fwlab.web.jobs import Jobs
from tests.fakes.measuring_command import COMMAND
signal.signal(signal.SIGTERM, signal.default_int_handler)  # as fwlab.cli.main does
server.Jobs = lambda folder: Jobs(folder, COMMAND)
server.serve(Project(Path.cwd()), "127.0.0.1", 0, lambda address: print(address, flush=True), shell=True)
"""
EVIL = '# <img src=x onerror="window.evil = 1"><script>window.evil = 1</script>\n'


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("student")
    folder = checkouts.make(top)
    (folder / "README.md").write_text("# The lab\n\nA sentence.\n")
    (folder / "hints.yml").write_text(f"{EX1}: [Where do you look?, Look there.]\n")
    return top


@pytest.fixture(scope="module")
def address(checkout: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=checkout,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
    )
    printed = re.match(r"http://\S+", process.stdout.readline())
    assert printed is not None
    yield printed[0].replace("127.0.0.1", "localhost")  # the browser resolves nothing else
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


@pytest.fixture
def page(browser: Window, address: str) -> Iterator[Window]:
    """A window that has shown the token."""
    browser.look()
    browser.driver.get(address)
    browser.wait_for("main h1")
    assert "token" not in browser.driver.current_url
    yield browser
    assert browser.errors() == []
    here = address.partition("?")[0]
    assert [url for url in browser.requests_elsewhere() if not url.startswith((here, here.replace("http", "ws")))] == []


def show(page: Window, address: str, path: str) -> None:
    page.driver.get(address.partition("/?")[0] + path)
    page.wait_for("main h1")


def test_an_exercise_from_prediction_to_reason(page: Window, address: str, checkout: Path) -> None:
    page.wait_for(f'a[href="/lab/{LAB}"]')[0].click()
    page.wait_for(f'a[href="/lab/{LAB}/exercise/{EX1}"]')[0].click()
    page.wait_for("section input")[0].send_keys("200k", Keys.ENTER)
    page.sees("You predict 200.0 kpps")
    assert read_predictions(checkouts.lab(checkout)) == {EX1: 200_000.0}
    page.press("Begin")
    page.write(f"{EVIL}*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n")
    page.press("Check")
    page.sees("Last check: pass")
    page.sees("the first measurement gave 250.0 kpps")
    assert "<b>a warning</b>" in page.run("return document.body.textContent")  # folded away, and no markup
    page.until(lambda: any(one.size["width"] > 300 for one in page.shown(".report svg")), "a plot")
    text = (checkout / "labs" / LAB / "work" / EX1 / "rules.iptables").read_text()
    assert "-s 198.18.20.66 -j DROP" in text
    assert text.startswith(EVIL)
    page.driver.refresh()
    page.sees("onerror")
    assert page.run("return window.evil") is None
    page.wait_for("section textarea")[0].send_keys("The rule names the host.")
    page.press("Keep")
    page.sees("Kept")
    assert read_progress(checkouts.lab(checkout)).of(EX1).why == "The rule names the host."


PAGES = [
    *("/", "/machines", "/own", "/shell"),
    *(f"/lab/{LAB}", f"/lab/{LAB}/exercise/{EX1}", f"/lab/{LAB}/measure", f"/lab/{LAB}/look"),
]


@pytest.mark.parametrize("path", PAGES)
def test_pages_fit_windows_light_and_dark_without_obstacles(
    page: Window, address: str, checkout: Path, axe: str | None, path: str
) -> None:
    for size, dark in ((SMALL, True), (LARGE, False)):
        page.look(size=size, dark=dark)
        show(page, address, path)
        assert not page.overflows(), size
        background, text = page.colour("body", "backgroundColor"), page.colour("body", "color")
        assert max(background) < 80 < min(text) if dark else min(background) > 240 > 80 > max(text)
        if path.endswith(EX1):
            if not (checkout / "labs" / LAB / "work" / EX1).exists():  # without the test above
                page.press("Begin")
            page.wait_for(".cm-content[aria-label]")
        assert axe is None or page.obstacles(axe) == []
    if axe is None:
        pytest.skip("axe-core is not installed: npm ci --prefix tests/browser")


def test_a_shell_is_used_by_keyboard_and_found_again(page: Window, address: str) -> None:
    show(page, address, "/shell")
    page.press("Open a shell")
    page.wait_for(".xterm-screen")
    page.run("document.querySelector('.xterm-helper-textarea').focus()")
    page.type("echo $((6 * 7))\n")
    page.until(lambda: "42" in page.all(".xterm-rows")[0].text.split(), "the answer")
    page.driver.refresh()
    page.until(lambda: "42" in page.all(".xterm-rows")[0].text.split(), "the answer again")


def test_the_keyboard_reaches_what_can_be_done(page: Window, address: str) -> None:
    show(page, address, f"/lab/{LAB}/exercise/ex2-more")
    page.sees("Nothing was checked yet.")
    reached = page.reached_by_tab(10)
    assert sum(one.startswith("button") for one in reached) >= 3
    assert any(one.startswith("input") for one in reached)
    assert any(one.startswith("a.") or one == "a" for one in reached)
