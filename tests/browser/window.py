# SPDX-License-Identifier: GPL-2.0-or-later
"""A browser window that shows files from the disk."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

T = TypeVar("T")
#: Width and height of a desktop's window and of a phone's (CSS pixels).
DESKTOP, PHONE = (1280, 900), (390, 844)
#: Seconds to wait for something on a page, on a busy host.
PATIENCE_S = 90
#: No sandbox: CI may run as root. Nothing but this project's own files is opened, and there is no way out to a network.
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
)


class Window:
    """Headless Chromium. `look` sets size and colour scheme for the pages that are opened afterwards."""

    def __init__(self, chromium: str, driver: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))

    def close(self) -> None:
        self.driver.quit()

    def look(self, *, size: tuple[int, int] = DESKTOP, dark: bool = False, media: str = "") -> None:
        self.width, height = size
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._tell("Emulation.setEmulatedMedia", media=media, features=[scheme])
        metrics = {"width": self.width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self._tell("Emulation.setDeviceMetricsOverride", **metrics)

    def open(self, path: Path) -> None:
        self.driver.get(path.resolve().as_uri())

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def shown(self, selector: str) -> list[WebElement]:
        return [element for element in self.all(selector) if element.is_displayed()]

    def wait_for(self, selector: str) -> list[WebElement]:
        """The shown elements, once there is one."""
        return self.until(lambda: self.shown(selector), selector)

    def press(self, words: str) -> None:
        """Press the button, also if the page draws it again just then."""

        def pressed() -> bool:
            found = next((one for one in self.shown("button") if one.text.strip() == words), None)
            if found is not None:
                found.click()
            return found is not None

        self.until(pressed, words)

    def sees(self, words: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until the page says this."""
        self.until(lambda: words in self.all("body")[0].text, words, patience_s)

    def until(self, holds: Callable[[], T], what: str, patience_s: float = PATIENCE_S) -> T:
        """Wait until it holds, also if the page draws again just then."""
        waiting = WebDriverWait(self.driver, patience_s, ignored_exceptions=[StaleElementReferenceException])
        return waiting.until(lambda _: holds(), what)

    def write(self, text: str) -> None:
        """Replace what is in the editor."""
        self.wait_for(".cm-content")[0].click()
        all_of_it = ActionChains(self.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL)
        all_of_it.send_keys(text).perform()

    def run(self, script: str, *values: object) -> Any:
        return self.driver.execute_script(script, *values)

    def type(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def colour(self, selector: str, name: str) -> tuple[int, ...]:
        """A computed colour as red, green and blue."""
        script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        text = self.run(script, selector, name)
        return tuple(int(float(part)) for part in text[text.index("(") + 1 : -1].split(",")[:3])

    def reached_by_tab(self, most: int = 60) -> list[str]:
        """The elements that the tab key reaches, one after the other, as `tag` or `tag.class`."""
        found = []
        script = "const e = document.activeElement; return [e.tagName, ...e.classList].join('.').toLowerCase()"
        for _ in range(most):
            self.type(Keys.TAB)
            found.append(self.run(script))
        return found

    def overflows(self) -> bool:
        """Whether the page can be scrolled sideways."""
        return self.run("return document.scrollingElement.scrollWidth > arguments[0]", self.width)

    def obstacles(self, axe: str) -> list[str]:
        """What axe-core, whose script is given, finds on the page: the rule and the first element that breaks it."""
        self.run(axe)
        script = "const done = arguments[0]; axe.run().then(found => done(found.violations))"
        return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in self.driver.execute_async_script(script)]

    def pdf_pages(self) -> int:
        """How many pages the page takes in print: of A4, unless it says otherwise."""
        size = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        data = base64.b64decode(self._tell("Page.printToPDF", printBackground=True, **size)["data"])
        return data.count(b"/Type /Page\n") or data.count(b"/Type /Page")

    def errors(self) -> list[str]:
        """What the pages logged as warnings and errors since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def requests_elsewhere(self) -> list[str]:
        """What the pages asked of other places than the disk since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        urls = [params["request"]["url"] for params in sent]
        return [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))]

    def _tell(self, command: str, **values: object) -> dict[str, Any]:
        return self.driver.execute_cdp_cmd(command, values)
