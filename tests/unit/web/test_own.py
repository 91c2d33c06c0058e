# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of one's own firewall: what it gives to `fwlab price` and `fwlab compare`, and shows of what they find."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from nicegui import ui

from tests.unit.web.conftest import until, visit

RULES = "*filter\n-A FORWARD -p tcp --dport 80 -j ACCEPT\nCOMMIT\n"
#: It finds what it was given, and writes a page where it was asked for one.
COMMAND = (
    sys.executable,
    "-c",
    """
import json, sys, pathlib
given = sys.argv[1:]
if "--html" in given:
    pathlib.Path(given[given.index("--html") + 1]).write_text("<h1>prices</h1>")
print(json.dumps({"event": "ResultMade", "text": "<b>found</b> " + " ".join(given)}))
""",
)


@pytest.fixture
def folder(checkout: Path) -> Path:
    return checkout / "reports" / "own"


def test_a_ruleset_is_priced(checkout: Path, folder: Path) -> None:
    async def walk() -> None:
        async with visit(checkout, COMMAND) as (user, jobs):
            await user.open("/own")
            user.find(kind=ui.button, content="Price").click()
            await user.should_see("my.rules is empty")
            [editor] = user.find(kind=ui.codemirror, marker="my.rules").elements
            editor.value = RULES
            [forms] = user.find(kind=ui.checkbox, marker="forms").elements
            forms.value = True
            user.find(kind=ui.button, content="Price").click()
            await until(lambda: jobs.latest is not None and not jobs.latest.running)
            await user.should_see("<b>found</b>", retries=50)
            [shown] = [one for one in user.client.elements.values() if one.tag == "iframe"]
            answer = await user.http_client.get(shown.props["src"])
            assert answer.text == "<h1>prices</h1>"
            assert "sandbox" in answer.headers["content-security-policy"]
            await user.open("/own")  # again
            await user.should_see("<b>found</b>")
            assert jobs.latest.result.split()[1:] == [
                *("price", str(folder / "my.rules"), "--forms", "--html", str(folder / "prices.html"), "--events")
            ]

    asyncio.run(walk())
    assert (folder / "my.rules").read_text() == RULES


def test_two_rulesets_are_compared(checkout: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "my.rules").write_text(RULES)
    (folder / "new.rules").write_text(RULES)

    async def walk() -> None:
        async with visit(checkout, COMMAND) as (user, jobs):
            await user.open("/own")
            [here] = user.find(kind=ui.checkbox, marker="here").elements
            here.value = True
            user.find(kind=ui.button, content="Compare").click()
            await until(lambda: jobs.latest is not None and not jobs.latest.running)
            assert jobs.latest.words == ("compare", str(folder / "my.rules"), str(folder / "new.rules"), "--here")
            await user.should_see("<b>found</b>", retries=50)
            assert (await user.http_client.get("/own/prices")).status_code == 404

    asyncio.run(walk())
