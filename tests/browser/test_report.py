# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of committed results: a run with its plots, and a check with predictions and a flame graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.report.model import build_model
from fwlab.report.renderers.html import page
from tests import ROOT
from tests.browser.window import DESKTOP, PHONE, Window

#: By name: the lab, its result, and what a student might have predicted. A check is made of what was graded.
REPORTS = {
    "run": ("lab03-ipset", "2026-11-20-full.json.gz", {}),
    "check": ("lab01-forwarding", "2026-11-21-exercises.json.gz", {"ex1-null-route": 200_000.0}),
}


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, found = tmp_path_factory.mktemp("reports"), {}
    for name, (lab_id, result, predictions) in REPORTS.items():
        lab = load_lab(Project(ROOT), lab_id)
        run = load_run(ROOT / "results" / lab_id / result, lab_id)
        solved = [one for one in run.exercises if one.ruleset.endswith("/reference")]
        run = run.model_copy(update={"exercises": solved, "predictions": predictions})
        found[name] = folder / f"{name}.html"
        found[name].write_text(page(build_model(lab, run)))
    return found


each_report = pytest.mark.parametrize("name", REPORTS)


def test_the_plots_of_a_run_are_there(window: Window, reports: dict[str, Path]) -> None:
    window.open(reports["run"])
    plots = window.shown("#plots svg")
    assert len(plots) >= 2
    assert all(plot.size["width"] > 500 and plot.size["height"] > 200 for plot in plots)
    assert len(window.all("#plots svg path")) > 50


def test_a_check_shows_question_prediction_picture_and_reason(window: Window, reports: dict[str, Path]) -> None:
    window.open(reports["check"])
    first = window.shown(".exercise")[0].text
    for words in (
        "Asked: Three packets of sixteen",
        "Predicted 200.0 kpps, measured",
        "predicted",
        "accepted: at least",
    ):
        assert words in first
    assert window.shown(".exercise figure.bars svg")[0].size["width"] > 300
    assert window.shown("#profiles svg")[0].size["width"] > 500
    tops = [
        window.run("return document.querySelector(arguments[0]).getBoundingClientRect().top", part)
        for part in ("#exercises", "#cases", "#profiles", "#conditions")
    ]
    assert tops == sorted(tops)


@each_report
@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_the_page(window: Window, reports: dict[str, Path], name: str, dark: bool) -> None:
    window.look(dark=dark)
    window.open(reports[name])
    page_colour, ink = window.colour("body", "backgroundColor"), window.colour("body", "color")
    assert (sum(page_colour) < sum(ink)) == dark
    labels = [window.run("return getComputedStyle(arguments[0]).fill", text) for text in window.all("svg text")[:5]]
    assert labels
    assert all(str(ink[0]) in label for label in labels), "text of a drawing has the page's colour"


@each_report
@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_it_is_not_scrolled_sideways(
    window: Window, reports: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    window.look(size=size)
    window.open(reports[name])
    assert not window.overflows()


def test_each_part_can_be_reached_by_the_keyboard(window: Window, reports: dict[str, Path]) -> None:
    window.open(reports["check"])
    reached = window.reached_by_tab()
    assert reached[0] == "a"
    assert {"a", "div.scroll", "figure.wide", "summary"} <= set(reached)


@each_report
def test_in_print_it_is_light_and_nothing_is_cut_off(window: Window, reports: dict[str, Path], name: str) -> None:
    window.look(size=(794, 1123), dark=True, media="print")  # A4 at 96 dpi
    window.open(reports[name])
    assert min(window.colour("body", "backgroundColor")) > 240
    assert max(window.colour("body", "color")) < 80
    assert window.shown("nav") == []
    wide = [box for box in window.shown(".scroll") if window.run("return arguments[0].scrollWidth > innerWidth", box)]
    assert wide == []
    assert 1 < window.pdf_pages() < 40
