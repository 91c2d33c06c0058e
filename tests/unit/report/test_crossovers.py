# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a set overtakes a list: interpolated in cost, with the interval of the trials, and shown everywhere."""

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


@pytest.mark.parametrize(
    ("ahead", "around", "value", "interval", "words"),
    [
        (SET, 0, 20, (20, 20), "20.0 ports (20.0 to 20.0)"),
        (SET, 40, 20, (16, 24), "20.0 ports (16.0 to 24.0)"),
        (lambda n: 4960, 30, 98, (95, None), "98.0 ports (95.0 to beyond 100)"),
        (lambda n: 3020, 30, 1, (None, 4), "1.000 ports (below 0 to 4.00)"),
        ({0: 2900, 50: 4100, 100: 4900}.get, 0, 75, (75, 75), "75.0 ports (75.0 to 75.0)"),
        (lambda n: 4000 + 20 * n, 0, None, (None, None), "not up to 100 ports"),
        (lambda n: 2900, 0, None, (None, None), "from 0 ports on"),
    ],
    ids=["straight", "scattered", "beyond the last", "below the first", "the last one counts", "never", "always"],
)
def test_sweeps_cross_where_their_costs_are_equal(
    ahead, around: float, value: float | None, interval: tuple[float | None, float | None], words: str
) -> None:
    """The interval comes from the extreme trials. Made-up trials are whole packets, so nothing is quite exact."""
    found = only(lab_of(), run_of(lab_of(), ahead=ahead, around=around))
    near = [one if one is None else pytest.approx(one, rel=1e-2) for one in (value, *interval)]
    assert [found.value, found.low, found.high] == near
    assert (found.parameter, found.first, found.last, found.always) == ("ports", 0, 100, "from" in words)
    assert position(found) == words


def test_a_steeper_winner_is_found_in_the_right_segment() -> None:
    lab = lab_of([0, 50, 100, 150])
    found = only(lab, run_of(lab, ahead=lambda n: 4400, steps=[0, 50, 100, 150]))
    assert found.value == pytest.approx(70, rel=1e-3)


@pytest.mark.parametrize("cases", [("list-0", "list-50", "set-50", "set-100"), ("list-0", "list-50", "list-100")])
def test_fewer_than_two_common_points_give_no_crossover(cases: tuple[str, ...]) -> None:
    lab = lab_of()
    assert build_model(lab, a_run([case for case in run_of(lab).cases if case.id in cases])).crossovers == ()


def test_an_unknown_sweep_is_refused() -> None:
    with pytest.raises(ValidationError, match="unknown sweep nobody"):
        lab_of(faster="nobody")


LAB = lab_of()
MODEL = build_model(LAB, run_of(LAB, around=40))


def test_every_form_shows_it_next_to_the_published_value() -> None:
    [found] = MODEL.crossovers
    words = position(found)
    assert published_positions(found) == "S3: 120 ports"
    out = io.StringIO()
    show(MODEL, Console(file=out, width=100, force_terminal=False))
    (line,) = [line for line in out.getvalue().splitlines() if line.startswith("Set | list")]
    assert " ".join(line.split()) == f"Set | list {words} S3: 120 ports"
    text = page(MODEL)
    assert f"<td>Set | list</td><td>{words}</td><td>S3: 120 ports</td>" in text
    assert f"Set | list: {words}" in text[text.index("<svg") :]
    assert f"| Set \\| list | {words} | S3: 120 ports |" in figures_table(MODEL)
    (entry,) = run_document(MODEL)["crossings"]
    assert (entry["id"], entry["value"], entry["low"]) == ("ports", found.value, found.low)
    assert (entry["behind"], entry["ahead"]) == ("list", "set")
    assert entry["published"] == [{"source": "S3", "value": 120.0, "unit": "ports", "ratio": None}]


def test_a_run_without_a_crossover_does_not_mention_it() -> None:
    model = build_model(LAB, a_run([measured(LAB, "raw-drop", 300_000)]))
    assert "Crossovers" not in page(model)
    assert run_document(model)["crossings"] == []


def test_sweeps_from_zero_have_linear_axes_and_a_plot_by_parameter() -> None:
    lines = MODEL.curves["capacity"]
    assert [[x for x, _ in line.points] for line in lines] == [STEPS, STEPS]
    assert all(line.linear for line in lines)
    other = build_model(lab_of([16, 64]), run_of(lab_of([16, 64]), steps=[16, 64])).curves["capacity"]
    assert panels([*lines, *other]) == [list(lines), list(other)]
    (svg,) = plots(build_model(lab_of(), run_of(lab_of())), METRICS["capacity"])
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert {"0", "20", "100", "number of ports"} <= set(words)
    assert {"List", "Set", "S3: 120 ports"} <= set(words)
