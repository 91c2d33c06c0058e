# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a set overtakes a list: interpolated in cost, with the interval of the trials, and shown everywhere."""

from __future__ import annotations

import io
import re

import pytest
from pydantic import ValidationError
from rich.console import Console

from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.curves import Crossover, panels, position, published_positions
from fwlab.report.model import build_model
from fwlab.report.plot import plots
from fwlab.report.renderers.html import page
from fwlab.report.renderers.json_output import run_document
from fwlab.report.renderers.markdown import figures_table
from fwlab.report.renderers.terminal import show
from tests.fakes.factories import a_lab, a_run, measured

#: Instructions per packet: the list costs 3000 + 20 n, the set 3400, so that they meet at 20.
LIST, SET = (lambda n: 3000 + 20 * n), (lambda _: 3400)
STEPS = [0, 50, 100]


def lab_of(steps: list[int] = STEPS, **crossover: object) -> Lab:
    """A list and a set over the same steps, from zero on."""
    base = a_lab().model_dump(by_alias=True, exclude={"exercises", "expectations"})
    base["sweeps"] = [
        {
            "id": name,
            "title": name.capitalize(),
            "ruleset": name,
            "parameter": "ports",
            "values": steps,
            "traffic": "flood",
        }
        for name in ("list", "set")
    ]
    published = [{"source": "S3", "value": 120, "unit": "ports"}]
    told = {"id": "ports", "title": "Set | list", "slower": "list", "faster": "set", "published": published}
    base["crossovers"] = [{**told, **crossover}]
    for case in base["cases"]:
        case.pop("sweep", None)
    return Lab.model_validate(base)


def run_of(lab: Lab, behind=LIST, ahead=SET, around: float = 0.0, steps: list[int] = STEPS) -> Run:
    """Costs in instructions per packet; trials deviate by `around` instructions to both sides."""
    return a_run(
        [
            measured(lab, f"{name}-{n}", *(1e9 / (cost(n) + d) for d in (-around, 0, around)))
            for name, cost in (("list", behind), ("set", ahead))
            for n in steps
        ]
    )


def only(lab: Lab, run: Run) -> Crossover:
    (found,) = build_model(lab, run).crossovers
    return found


class TestWhere:
    def test_straight_cost_lines_cross_where_expected(self) -> None:
        found = only(lab_of(), run_of(lab_of()))
        assert found.value == pytest.approx(20, rel=1e-3)  # the made-up trials are whole packets
        assert (found.parameter, found.first, found.last, found.always) == ("ports", 0, 100, False)

    def test_the_interval_comes_from_the_extreme_trials(self) -> None:
        found = only(lab_of(), run_of(lab_of(), around=40))
        assert found.low == pytest.approx(16, rel=1e-2)
        assert found.high == pytest.approx(24, rel=1e-2)

    def test_a_sweep_that_is_never_faster_does_not_cross(self) -> None:
        found = only(lab_of(), run_of(lab_of(), ahead=lambda n: 4000 + 20 * n))
        assert (found.value, found.low, found.high, found.always) == (None, None, None, False)
        assert position(found) == "not up to 100 ports"

    def test_a_sweep_that_is_always_faster_does_not_cross(self) -> None:
        found = only(lab_of(), run_of(lab_of(), ahead=lambda n: 2900))
        assert (found.value, found.low, found.high, found.always) == (None, None, None, True)
        assert position(found) == "from 0 ports on"

    def test_the_last_crossover_counts(self) -> None:
        """Ahead at first, behind at 50, ahead again at 100."""
        costs = {0: 2900, 50: 4100, 100: 4900}
        found = only(lab_of(), run_of(lab_of(), ahead=costs.get))
        assert 50 < found.value < 100

    def test_an_interval_may_exceed_the_measured_range(self) -> None:
        found = only(lab_of(), run_of(lab_of(), ahead=lambda n: 4960, around=30))
        assert found.value == pytest.approx(98, rel=1e-2)
        assert found.high is None
        assert position(found) == f"{found.value:.1f} ports ({found.low:.1f} to beyond 100)"
        found = only(lab_of(), run_of(lab_of(), ahead=lambda n: 3020, around=30))
        assert found.low is None
        assert "(below 0 to" in position(found)

    def test_a_steeper_winner_is_found_in_the_right_segment(self) -> None:
        lab = lab_of([0, 50, 100, 150])
        found = only(lab, run_of(lab, ahead=lambda n: 4400, steps=[0, 50, 100, 150]))
        assert found.value == pytest.approx(70, rel=1e-3)


class TestWhichRuns:
    def test_one_common_point_gives_no_crossover(self) -> None:
        lab = lab_of()
        run = run_of(lab)
        cases = [case for case in run.cases if case.id in ("list-0", "list-50", "set-50", "set-100")]
        assert build_model(lab, a_run(cases)).crossovers == ()

    def test_a_sweep_that_was_not_measured(self) -> None:
        lab = lab_of()
        assert (
            build_model(lab, a_run([case for case in run_of(lab).cases if case.id.startswith("list")])).crossovers == ()
        )

    def test_an_unknown_sweep_is_refused(self) -> None:
        with pytest.raises(ValidationError, match="unknown sweep nobody"):
            lab_of(faster="nobody")


class TestShown:
    LAB = lab_of()
    RUN = run_of(LAB, around=40)
    WORDS = position(only(LAB, RUN))

    def test_next_to_the_published_value(self) -> None:
        assert published_positions(only(self.LAB, self.RUN)) == "S3: 120 ports"

    def test_in_the_terminal(self) -> None:
        out = io.StringIO()
        show(build_model(self.LAB, self.RUN), Console(file=out, width=100, force_terminal=False))
        (line,) = [line for line in out.getvalue().splitlines() if line.startswith("Set | list")]
        assert " ".join(line.split()) == f"Set | list {self.WORDS} S3: 120 ports"

    def test_on_the_page_in_the_table_and_in_the_drawing(self) -> None:
        text = page(build_model(self.LAB, self.RUN))
        assert f"<td>Set | list</td><td>{self.WORDS}</td><td>S3: 120 ports</td>" in text
        assert f"Set | list: {self.WORDS}" in text[text.index("<svg") :]

    def test_in_the_guide(self) -> None:
        assert f"| Set \\| list | {self.WORDS} | S3: 120 ports |" in figures_table(build_model(self.LAB, self.RUN))

    def test_in_the_document_with_bare_numbers(self) -> None:
        (entry,) = run_document(build_model(self.LAB, self.RUN))["crossings"]
        found = only(self.LAB, self.RUN)
        assert (entry["id"], entry["value"], entry["low"]) == ("ports", found.value, found.low)
        assert entry["published"] == [{"source": "S3", "value": 120.0, "unit": "ports", "ratio": None}]

    def test_a_run_without_a_crossover_does_not_mention_it(self) -> None:
        run = a_run([measured(self.LAB, "raw-drop", 300_000)])
        assert "Crossovers" not in page(build_model(self.LAB, run))
        assert run_document(build_model(self.LAB, run))["crossings"] == []


class TestAxes:
    def test_a_sweep_from_zero_keeps_its_first_point(self) -> None:
        lines = build_model(lab_of(), run_of(lab_of())).curves["capacity"]
        assert [[x for x, _ in line.points] for line in lines] == [STEPS, STEPS]
        assert all(line.linear for line in lines)

    def test_linear_sweeps_are_drawn_by_parameter_and_apart_from_logarithmic_ones(self) -> None:
        lines = build_model(lab_of(), run_of(lab_of())).curves["capacity"]
        other = build_model(lab_of([16, 64]), run_of(lab_of([16, 64]), steps=[16, 64])).curves["capacity"]
        assert panels([*lines, *other]) == [list(lines), list(other)]

    def test_linear_axes_begin_at_zero(self) -> None:
        (svg,) = plots(build_model(lab_of(), run_of(lab_of())), METRICS["capacity"])
        words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
        assert {"0", "20", "100", "number of ports"} <= set(words)
        assert {"List", "Set", "S3: 120 ports"} <= set(words)
