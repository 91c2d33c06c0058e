# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture of an exercise in a report: what was predicted and measured, and what is accepted."""

import re
from xml.etree import ElementTree

import pytest

from fwlab.model.results import Measured
from fwlab.report.check_plot import LEFT, MAX_BAR, WIDTH, CheckPlot, check_plot, check_svg
from fwlab.report.model import ReportModel, build_model
from tests.fakes.factories import RANGES, a_full_run, a_lab, attempt

LAB = a_lab(RANGES)


def model(predicted: float | None = 300_000, **changes: object) -> ReportModel:
    run = a_full_run(LAB)
    exercise: Measured = attempt(**changes) if changes else run.exercises[0]
    predictions = {} if predicted is None else {exercise.id: predicted}
    return build_model(LAB, run.model_copy(update={"exercises": [exercise], "predictions": predictions}))


def plot_of(found: ReportModel) -> CheckPlot | None:
    [row], [base] = found.exercises, found.baselines
    return check_plot(row, base.capacity)


def drawn(predicted: float | None) -> ElementTree.Element:
    plot = plot_of(model(predicted))
    assert plot is not None
    return ElementTree.fromstring(check_svg(plot, "what it shows"))


@pytest.mark.parametrize("predicted", [300_000, None])
def test_prediction_measurement_and_baseline_stand_below_each_other(predicted: float | None) -> None:
    texts = [text.text for text in drawn(predicted).iter("text")]
    names = [text for text in texts if text in ("predicted", "measured", "baseline")]
    assert names == [*(["predicted"] if predicted else []), "measured", "baseline"]
    assert ("300.0 kpps" in texts, "255.0 kpps" in texts) == (True, True), "the baseline has what was predicted"
    assert "accepted: at least 200 kpps" in texts


@pytest.mark.parametrize("predicted", [0.0, 250.0, 300_000.0, 1e12])
def test_all_of_it_is_inside_the_picture(predicted: float) -> None:
    boxes = list(drawn(predicted).iter("rect"))
    assert len(boxes) >= 5
    for box in boxes:
        left, width = float(box.get("x", "")), float(box.get("width", ""))
        assert left >= LEFT
        assert 0 < width <= WIDTH
        assert left + width <= LEFT + MAX_BAR + 3.1 or width == 12


def test_bars_are_to_scale() -> None:
    bars = [float(box.get("width", "")) for box in drawn(150_000).iter("rect") if box.get("height") == "22"]
    assert bars[1] / bars[0] == pytest.approx(255_000 / 150_000, rel=0.01)


def test_a_refused_ruleset_has_no_picture() -> None:
    assert plot_of(model(300_000, trials=[], deliveries=[], refused="line 3 failed")) is None


def test_the_page_names_the_figures_for_those_who_do_not_see_them() -> None:
    from fwlab.report.renderers.html import page

    label = re.search(r'aria-label="(capacity of [^"]*)"', page(model()))[1]
    assert "predicted 300.0 kpps, measured 255.0 kpps, baseline 300.0 kpps; accepted: at least 200 kpps" in label
