# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages, by NiceGUI's simulated user: each action is recorded as the command records it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from nicegui import ui

from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.student.hints import next_hints
from fwlab.student.predictions import read_predictions
from fwlab.student.progress import read_progress
from fwlab.web.axis import STEPS, Axis
from fwlab.web.measuring import chart
from fwlab.web.texts import picture_of, shown
from tests import ROOT
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, LAB
from tests.unit.web.conftest import until, visit

PAGE = f"/lab/{LAB}/exercise/{EX1}"
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def work(checkout: Path) -> Path:
    return checkout / "labs" / LAB / "work"


def begin(checkout: Path, text: str) -> Path:
    file = work(checkout) / EX1 / "rules.iptables"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def press(user, name: str) -> None:
    user.find(kind=ui.button, content=name).click()


def test_the_map_shows_progress_and_the_search_narrows_it(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open("/")
            await user.should_see("0 of 2 exercises passed")
            user.find(ui.input).type("nothing like this")
            await user.should_not_see("0 of 2 exercises passed")

    asyncio.run(walk())


def test_a_lab_shows_its_page_its_steps_and_what_comes_next(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(f"/lab/{LAB}")
            await user.should_see("A sentence.")
            await user.should_not_see("cog")
            await user.should_see("not begun")
            await user.should_see(f"fwlab predict {LAB} {EX1}")
            await user.open("/lab/lab77-none")
            await user.should_see("unknown lab lab77-none")
            await user.open(f"/lab/{LAB}/exercise/ex9-none")
            await user.should_see("ex9-none")
            await user.open("/guide/..%2f..%2fetc%2fpasswd")

    with pytest.raises(AssertionError, match="404"):
        asyncio.run(walk())


def test_a_prediction_is_that_of_the_command(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(PAGE)
            user.find(marker="prediction").type("many")
            press(user, "Predict")
            await user.should_see("'many' is not a number")
            user.find(marker="prediction").clear().type("250k")
            press(user, "Predict")
            await user.should_see("You predict 250.0 kpps")

    asyncio.run(walk())
    assert read_predictions(checkouts.lab(checkout)) == {EX1: 250_000.0}


def test_a_prediction_is_dragged_along_the_axis(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(PAGE)
            await user.should_see("Which rule?")
            await user.should_not_see("That rule.")
            [handle] = user.find(marker="axis").elements
            handle.value = round(STEPS * Axis(METRICS["capacity"]).place(250_000))
            press(user, "Predict")
            await user.should_see("You predict 250.0 kpps")

    asyncio.run(walk())
    assert read_predictions(checkouts.lab(checkout)) == {EX1: 250_000.0}


@pytest.mark.parametrize(("metric", "values"), [("capacity", [1e3, 25e3, 1e6]), ("survival", [0.0, 0.19, 1.0])])
def test_a_place_on_the_axis_is_a_value(metric: str, values: list[float]) -> None:
    axis = Axis(METRICS[metric])
    assert [axis.value(axis.place(value)) for value in values] == values
    assert [axis.place(value) for value in (-1, 1e12)] == [0, 1]


def test_a_ruleset_is_begun_edited_and_saved(checkout: Path) -> None:
    file = work(checkout) / EX1 / "rules.iptables"

    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(PAGE)
            press(user, "Begin")
            await user.should_see(kind=ui.codemirror)
            [editor] = user.find(kind=ui.codemirror).elements
            assert editor.value == file.read_text()
            editor.value = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
            press(user, "Save")
            await user.should_see("Saved")
            assert file.read_text() == editor.value
            editor.value = "sudo iptables -F\n"
            press(user, "Save")
            await user.should_see("`sudo` is a command")
            file.write_text("changed in a terminal\n")
            editor.value = "*raw\nCOMMIT\n"
            press(user, "Save")
            await user.should_see("was changed elsewhere, too")
            assert file.read_text() == "changed in a terminal\n"

    asyncio.run(walk())


@pytest.mark.parametrize("name", ["../x.nft", "/tmp/x.nft", "x.sh", ".x.nft", "rules.iptables", "", "a/b.nft"])
def test_a_file_is_added_nowhere_else_and_under_no_other_name(checkout: Path, name: str) -> None:
    file = begin(checkout, "*raw\nCOMMIT\n")
    before = sorted(checkout.rglob("*"))

    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(PAGE)
            if name:
                user.find(marker="new file").type(name)
            press(user, "Add")
            await asyncio.sleep(0.2)

    asyncio.run(walk())
    assert sorted(checkout.rglob("*")) == before
    assert file.read_text() == "*raw\nCOMMIT\n"


def test_a_link_in_the_folder_is_not_followed(checkout: Path) -> None:
    begin(checkout, "*raw\nCOMMIT\n")
    secret = checkout / "secret"
    secret.write_text("a secret")
    (work(checkout) / EX1 / "link.nft").symlink_to(secret)

    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(PAGE)
            await user.should_see("a ruleset is plain files, no links")
            await user.should_not_see("a secret")

    asyncio.run(walk())


def test_nothing_of_a_students_file_is_markup(checkout: Path) -> None:
    """What would be markup is only ever the text of an element, or the value of an editor."""
    begin(checkout, f"# {SCRIPT}\n*raw\nCOMMIT\n")
    (work(checkout) / EX1 / f"{SCRIPT.replace('/', '')}.txt").write_text("")

    async def walk() -> None:
        async with visit(checkout) as (user, jobs):
            await user.open(PAGE)
            press(user, "Check")
            await until(lambda: jobs.latest is not None and not jobs.latest.running)
            await user.should_see("Last check")
            for element in user.client.elements.values():
                markup = str(element.props.get("innerHTML", ""))
                assert "<script" not in markup
                assert "<img" not in markup or isinstance(element, ui.markdown)
            answer = await user.http_client.get(PAGE)
            assert SCRIPT not in answer.text
            assert "<script>alert" not in answer.text

    asyncio.run(walk())


def test_a_check_from_prediction_to_why(checkout: Path) -> None:
    begin(checkout, "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n")

    async def walk() -> None:
        async with visit(checkout) as (user, jobs):
            await user.open(PAGE)
            user.find(marker="prediction").type("200k")
            press(user, "Predict")
            press(user, "Show hint 1 of 2")
            await user.should_see("Where do you look?")
            await user.should_not_see("Look there.")
            press(user, "Check")
            await until(lambda: jobs.latest is not None and not jobs.latest.running)
            await user.should_see("Last check: pass", retries=50)
            await user.should_see("the first measurement gave 250.0 kpps")
            await user.should_see("attacker")
            drawings = [one.content for one in user.find(kind=ui.html).elements if "<svg" in one.content]
            assert sorted(drawn.count("<circle") for drawn in drawings) == [0, 2]
            for drawn in drawings:
                assert "predicted" in drawn
                assert "200.0 kpps" in drawn
            user.find(marker="why").type("The rule names the host.")
            next_hints(Project(checkout), checkouts.lab(checkout), EX1)  # as in a terminal, meanwhile
            await user.should_see("Look there.", retries=50)
            press(user, "Keep")
            await user.should_see("Kept")

    asyncio.run(walk())
    done = read_progress(checkouts.lab(checkout)).of(EX1)
    assert (done.predicted, done.hints, done.why, len(done.tries)) == (200_000.0, 2, "The rule names the host.", 1)


def test_a_page_that_is_loaded_again_finds_the_check(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAIT", "300")
    begin(checkout, "*raw\nCOMMIT\n")

    async def walk() -> None:
        async with visit(checkout) as (user, jobs):
            await user.open(PAGE)
            press(user, "Check")
            await until(lambda: jobs.latest is not None and jobs.latest.step.endswith(": trials"))
            await user.open(PAGE)
            await user.should_see("trials")
            press(user, "Cancel")
            await until(lambda: not jobs.latest.running)
            await user.should_see("Cancelled", retries=50)

    asyncio.run(walk())


def test_what_a_terminal_does_is_seen(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(PAGE)
            await asyncio.sleep(0.7)
            next_hints(Project(checkout), checkouts.lab(checkout), EX1)
            await user.should_see("Where do you look?", retries=50)

    asyncio.run(walk())


def test_cases_are_measured_and_plotted(checkout: Path) -> None:
    case = next(one.id for one in checkouts.lab(checkout).cases.values() if one.sweep is None)

    async def walk() -> None:
        async with visit(checkout) as (user, jobs):
            await user.open(f"/lab/{LAB}/measure")
            press(user, "Measure")
            await user.should_see("choose the cases to measure")
            [box] = user.find(kind=ui.checkbox, marker=case).elements
            box.value = True
            press(user, "Measure")
            await until(lambda: jobs.latest is not None and not jobs.latest.running)
            await user.should_see(kind=ui.echart, retries=50)
            [plot] = user.find(kind=ui.echart).elements
            assert plot.options["series"][0]["data"] == [300.0]

    asyncio.run(walk())


def test_a_sweep_is_a_curve_and_other_cases_are_bars() -> None:
    lab = load_lab(Project(ROOT), "lab03-ipset")
    names = ["iptables-rules-1024", "iptables-rules-16", "nft-rules-16"]
    found = [(lab.cases[name], 100_000.0 + place) for place, name in enumerate(names)]
    curves = chart(lab, METRICS["capacity"], found)
    assert curves["xAxis"]["type"] == "log"
    assert {one["name"]: [x for x, _ in one["data"]] for one in curves["series"]} == {
        "iptables-rules": [16.0, 1024.0],
        "nft-rules": [16.0],
    }
    bars = chart(lab, METRICS["capacity"], [*found, (lab.cases["raw-drop"], 300_000.0)])
    assert bars["yAxis"]["data"] == [*names, "raw-drop"]


@pytest.mark.parametrize("path", sorted((ROOT / "labs").glob("lab*/README.md")), ids=lambda path: path.parent.name)
def test_pages_lead_nowhere_else(path: Path) -> None:
    """What remains of links leads to pages of this server."""
    import re

    text = shown(Project(ROOT), path)
    assert "[[[" not in text
    targets = [target for _, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", text)]
    assert targets
    assert [one for one in targets if not one.startswith(("#", "/lab/", "/guide/", "/pictures/"))] == []
    pictures = [one.split("/")[2:] for one in targets if one.startswith("/pictures/")]
    assert all(picture_of(Project(ROOT), lab, name) for lab, name in pictures)


@pytest.mark.parametrize("name", ["../lab.yml", "lab.yml", "..", "none.svg"])
def test_only_pictures_are_served(name: str) -> None:
    assert picture_of(Project(ROOT), "lab03-ipset", name) is None
    assert picture_of(Project(ROOT), "..", "network.svg") is None
