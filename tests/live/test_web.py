# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab web` on the machines: lab03's first exercise from prediction to pass, and a measurement, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.window import PATIENCE_S, Window
from tests.fakes.programs import program

from .conftest import LAB, Checkout

pytestmark = pytest.mark.live

EX1 = "ex1-one-host"
RULES = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
#: Seconds that a check, or a measurement of one case, may take on a busy host.
MEASURED_S = 600


@pytest.fixture
def page(lab: Checkout) -> Iterator[Window]:
    lab.clear_work()  # other tests of this process check the same exercise: then it has no prediction to ask for
    server = lab.start(*lab.fwlab_command("web", "--port", "0"))
    printed = re.search(r"http://\S+", server.stdout.readline())
    assert printed is not None
    window = Window(*(program(name, packages="packages-browser.txt") for name in ("chromium", "chromedriver")))
    try:
        window.look()
        window.driver.get(printed[0].replace("127.0.0.1", "localhost"))  # the browser resolves nothing else
        yield window
        assert window.errors() == []
    finally:
        window.close()
        server.terminate()
        server.communicate(timeout=PATIENCE_S)


def show(page: Window, path: str) -> None:
    page.driver.get(re.sub(r"(//[^/]+).*", rf"\1{path}", page.driver.current_url))
    page.wait_for("main h1")


def test_ex1_from_prediction_to_pass(lab: Checkout, page: Window) -> None:
    page.wait_for(f'a[href="/lab/{LAB}"]')[0].click()
    page.wait_for(f'a[href="/lab/{LAB}/exercise/{EX1}"]')[0].click()
    page.wait_for("section input")[0].send_keys("200k", Keys.ENTER)
    page.sees("You predict 200.0 kpps")
    page.press("Begin")
    page.write(RULES)
    page.press("Check")
    page.sees("Last check: pass", MEASURED_S)
    page.sees("the first measurement gave ")
    assert page.run("return document.querySelectorAll('.job circle').length") >= 3
    rows = page.run("return [...document.querySelectorAll('section table tr')].map(row => row.innerText)")
    arrived = {cells[0]: cells[1:] for row in rows if len(cells := row.split()) == 3}
    assert int(arrived["attacker"][0]) > int(arrived["attacker"][1]) == 0
    assert int(arrived["legitimate"][0]) == int(arrived["legitimate"][1]) > 0
    assert "outcome: pass" in (lab.top / "labs" / LAB / "work" / "progress.yml").read_text()


def test_a_case_is_measured(lab: Checkout, page: Window) -> None:
    show(page, f"/lab/{LAB}/measure")
    next(box for box in page.shown(".q-checkbox") if box.text.startswith("raw-drop (")).click()
    page.press("Measure")
    page.sees("raw-drop: 32", MEASURED_S)
    assert page.wait_for(".nicegui-echart svg")
    written = lab.top / "reports" / LAB / "report.html"
    page.until(written.is_file, "the report")
