# SPDX-License-Identifier: GPL-2.0-or-later
"""What a reader of a run sees: terminal, page, plots, the block in a guide."""

import io
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from rich.console import Console

from fwlab.checkout.atomic_write import write_atomically
from fwlab.cli.main import report
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import FwlabError
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.curves import Curve
from fwlab.report.files import write_report
from fwlab.report.model import build_model
from fwlab.report.plot import drawing, plots, svg_element
from fwlab.report.renderers.html import page
from fwlab.report.renderers.markdown import figures_table
from fwlab.report.renderers.terminal import show
from tests.fakes.factories import RANGES, a_full_run, a_lab, a_run, attempt, measured, real

LAB = a_lab(RANGES)
RUN = a_full_run(LAB)
#: HTML elements without an end tag.
VOID = {"meta", "br", "hr", "img", "link", "input"}


def printed(run: Run, width: int = 100, lab: Lab = LAB) -> str:
    out = io.StringIO()
    show(build_model(lab, run), Console(file=out, width=width, force_terminal=False))
    return out.getvalue()


class TestTerminal:
    @pytest.mark.parametrize(("width", "widest"), [(80, 80), (100, 100), (200, 100)])
    def test_output_fits_the_width(self, width: int, widest: int) -> None:
        lines = printed(RUN, width).splitlines()
        assert max(cell_len(line.rstrip()) for line in lines) <= widest

    def test_our_figure_is_next_to_the_published_one(self) -> None:
        line = next(line for line in printed(RUN).splitlines() if line.startswith("set-1000"))
        figures = ["273.0", "0.910", "0.910 S1", "0 %", "3663", "0.02100", "0.22 %"]
        assert " ".join(line.split()) == " ".join(["set-1000", *figures, "pass"])

    def test_what_was_published_without_a_ratio_is_not_beside_ours(self) -> None:
        absolute = {case.id: case.published for case in LAB.cases.values() if case.published}
        assert absolute  # else this proves nothing
        cases = {
            name: case.model_copy(update={"published": [p.model_copy(update={"ratio": None}) for p in case.published]})
            for name, case in LAB.cases.items()
        }
        text = printed(RUN, lab=LAB.model_copy(update={"cases": cases}))
        assert " S1" not in text
        assert "published" not in text

    def test_a_testbed_that_the_user_named_is_said_to_be_that(self) -> None:
        facts = RUN.testbed.model_copy(update={"forced": True})
        text = printed(RUN.model_copy(update={"testbed": facts}))
        assert "; the testbed was asked for\n" in text
        assert "asked for" not in printed(RUN)

    def test_failures_have_a_reason(self) -> None:
        text = " ".join(printed(RUN).split())
        assert "set-1: 270.0 kpps, expected at least 280 kpps. Look again. Invented reason." in text

    def test_prediction_is_next_to_the_measurement(self) -> None:
        assert "You predicted 300.0 kpps, measured 255.0 kpps: 0.850 of the prediction" in printed(RUN)

    def test_a_refusal_is_shown_once_and_literally(self) -> None:
        refused = attempt(trials=[], deliveries=[], refused="line 3 failed: bad word [/bold] here")
        assert printed(a_run([], [refused])).count("line 3 failed: bad word [/bold] here") == 1

    def test_an_emulated_dut_on_the_hosts_clock_is_marked(self) -> None:
        assert "never judged absolutely" in " ".join(printed(a_run([], testbed=real("tcg"))).split())
        assert "never judged" not in printed(a_run([], testbed=real("kvm")))


class Balanced(HTMLParser):
    """Checks that every element is closed in order, and keeps what the tests look at."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


@cache
def whole_page() -> str:
    return page(build_model(LAB, RUN))


class TestPage:
    @pytest.fixture
    def parsed(self) -> Balanced:
        parser = Balanced()
        parser.feed(whole_page())
        parser.close()
        return parser

    def test_it_is_one_whole_document_without_other_files(self, parsed: Balanced) -> None:
        assert parsed.open == []
        assert whole_page().lstrip().startswith("<!DOCTYPE html>")
        assert not re.search(r"https?://|<script|<link|@import|\bsrc=", whole_page())
        targets = [value for name, value in parsed.attributes if name in ("href", "xlink:href")]
        assert all(target.startswith("#") for target in targets)
        ids = [value for name, value in parsed.attributes if name == "id"]
        assert len(ids) == len(set(ids))
        used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', whole_page()))
        assert used
        assert used <= set(ids)
        assert whole_page().count("<svg ") == 3, "both plots and the exercise's picture"

    def test_it_shows_the_conditions(self, parsed: Balanced) -> None:
        for fact in ("6.1.0-dut", "Made-up CPU <7>", "virtual", "abcdef012345", "2026-01-02", "nokaslr"):
            assert fact in parsed.text

    def test_the_table_has_our_figures_and_the_published_ones(self) -> None:
        cells = re.search(r">set-1000</code></td>(.*?)</tr>", whole_page(), re.DOTALL)[1]
        plain = re.findall(r"<td[^>]*>(.*?)</td>", cells, re.DOTALL)
        assert [re.sub(r"<[^>]+>", " ", cell).strip() for cell in plain] == [
            *("273.0", "0.910", "S1: 255.0 · 0.910", "0 %", "3663", "0.02100", "0.22 %", "3", "pass")
        ]

    def test_exercises_have_prediction_verdict_and_reason(self, parsed: Balanced) -> None:
        words = " ".join(parsed.text.split())
        assert "Predicted 300.0 kpps, measured 255.0 kpps: 0.850 of the prediction." in words
        assert "delivered, attacker pass 0 % 0 % Well done. Invented reason." in words

    def test_a_refusal_cannot_inject_markup(self) -> None:
        refused = attempt(trials=[], deliveries=[], refused="<script>alert(1)</script>")
        text = page(build_model(LAB, a_run([], [refused])))
        assert "<script>" not in text
        assert text.count("&lt;script&gt;") == 1

    def test_an_empty_run_has_a_page(self) -> None:
        text = page(build_model(LAB, a_run([])))
        assert "<svg" not in text
        assert "Conditions" in text


class TestPlot:
    def test_curves_run_over_the_parameter_and_the_published_ratio_is_at_our_baseline(self) -> None:
        capacity, load = (build_model(LAB, RUN).curves[name] for name in ("capacity", "load_time"))
        assert {line.id: [x for x, _ in line.points] for line in capacity} == {"rules": [16, 1024], "set": [1, 1000]}
        assert [line.id for line in load] == ["rules", "set", "load-each"]
        marks = [(p.x, p.y, p.source) for line in capacity for p in line.published]
        assert marks == [(1000, pytest.approx(273_000), "S1")]
        alone = a_run([measured(LAB, "set-1000", 273_000)])
        assert build_model(LAB, alone).curves["capacity"][0].published == (), "without a baseline"

    def test_a_capacity_of_zero_is_not_drawn(self) -> None:
        case = measured(LAB, "rules-16", 0.0)
        assert build_model(LAB, a_run([case])).curves["capacity"] == ()
        assert plots(build_model(LAB, a_run([case])), METRICS["capacity"]) == []

    def test_a_plot_is_an_element_in_the_colours_of_the_page_and_always_the_same(self) -> None:
        (svg,) = plots(build_model(LAB, RUN), METRICS["capacity"])
        root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
        assert root.tag == "svg"
        words = [text.text for text in root.iter("text")]
        labels = {"Rules", "Set", "raw-drop", "S1 for Set", "number of rules or entries", "capacity, kpps"}
        assert labels <= set(words)
        assert "currentColor" in svg
        assert not re.search(r"#(?:123457|000000|ffffff)\b", svg)
        assert [svg] == plots(build_model(LAB, RUN), METRICS["capacity"])

    @pytest.mark.parametrize("cases", [["set-1000"], ["raw-drop", "set-1000"], ["set-1", "set-1000"]], ids=" ".join)
    @pytest.mark.parametrize("seconds", [1.0, 0.3])
    @pytest.mark.filterwarnings("error")
    def test_a_single_value_has_an_axis_of_some_width(self, cases: list[str], seconds: float) -> None:
        """One case of a sweep, or equal values: what is drawn has an axis, and matplotlib does not warn."""
        found = [measured(LAB, case, 300_000, loads=[seconds]) for case in cases]
        model = build_model(LAB, a_run(found))
        for metric in ("capacity", "load_time"):
            svg = svg_element(drawing(model, METRICS[metric], list(model.curves[metric])), metric, metric)
            assert "nan" not in svg
            assert "inf" not in re.sub(r">[^<]*<", "><", svg)

    @pytest.mark.parametrize(
        ("values", "scale"),
        [([0, 1, 10, 1000], "symlog"), ([0, 50, 1000], "linear"), ([0], "linear"), ([1, 1000], "log")],
        ids=str,
    )
    def test_small_values_beside_zero_are_not_squeezed(self, values: list[int], scale: str) -> None:
        model = build_model(LAB, RUN)
        figure = model.curves["capacity"][0].points[0][1]
        line = Curve("list", "A list", "entries", tuple((float(x), figure) for x in values))
        axes = drawing(model, METRICS["capacity"], [line]).axes[0]
        assert axes.get_xscale() == scale
        if scale == "symlog":
            places = [axes.transData.transform((x, 1.0))[0] for x in values]
            assert places[2] - places[1] > (places[3] - places[0]) / 6

    def test_single_cases_make_no_plot(self) -> None:
        cases = [measured(LAB, case, 300_000) for case in ("set-1", "rules-16")]
        assert plots(build_model(LAB, a_run(cases)), METRICS["capacity"]) == []
        cases.append(measured(LAB, "set-1000", 300_000))
        assert len(plots(build_model(LAB, a_run(cases)), METRICS["capacity"])) == 1


class TestMarkdown:
    def test_a_row_has_ours_and_the_published_ratio(self) -> None:
        table = figures_table(build_model(LAB, RUN))
        head = "| case | kpps | ratio to `raw-drop` | published ratio | source | spread | load, s |"
        assert table.splitlines()[0] == head
        assert "| Set, entries 1000 | 273.0 | 0.910 | 0.910 | S1 | 0.22 % | 0.02100 |" in table.splitlines()
        for one in table.split("\n\n")[:2]:
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in one.splitlines()}) == 1

    def test_a_long_sweep_is_shown_by_some_of_its_steps(self) -> None:
        declared = LAB.model_dump(by_alias=True, mode="json", exclude_none=True)
        declared["sweeps"][0]["values"] = list(range(16, 36))
        lab = Lab.model_validate(declared)
        run = a_run([measured(lab, case.id, 300_000) for case in lab.cases.values() if case.sweep == "rules"])
        table = figures_table(build_model(lab, run))
        assert re.findall(r"^\| Rules, rules (\d+) ", table, re.MULTILINE) == ["16", "20", "24", "27", "31", "35"]
        assert "14 more steps of the sweeps are in the raw results." in table

    def test_cases_without_a_baseline_have_a_separate_table(self) -> None:
        run = a_run([measured(LAB, "raw-drop", 300_000, metric="generator", generator_pps=290_000.0)])
        assert "| case | generator, kpps |\n| --- | ---: |\n| Raw drop | 290.0 |" in figures_table(
            build_model(LAB, run)
        )

    def test_a_doubtful_figure_is_marked(self) -> None:
        run = a_run([measured(LAB, "raw-drop", 300_000, problems=["a node died"])])
        assert "| Raw drop | 300.0 (in doubt) |" in figures_table(build_model(LAB, run))


class TestWriting:
    def test_page_and_raw_run_are_written_and_nothing_else(self, tmp_path: Path) -> None:
        folder = tmp_path / "reports" / "lab99"
        assert write_report(build_model(LAB, RUN), folder) == folder / "report.html"
        assert sorted(p.name for p in folder.iterdir()) == ["report.html", "run.json"]
        assert Run.model_validate_json((folder / "run.json").read_text()) == RUN

    def test_a_failed_write_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write_atomically(tmp_path / "report.html", "old")
        with pytest.raises(FwlabError, match="report.html.*cannot be written"):
            write_atomically(path / "below", "text")

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("fwlab.checkout.atomic_write.os.replace", full)
        with pytest.raises(FwlabError, match="No space left on device"):
            write_atomically(path, "new")
        assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
        assert path.read_text() == "old"

    def test_what_cannot_be_written_is_printed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "reports").touch()
        with pytest.raises(FwlabError, match="cannot be written"):
            report(build_model(LAB, RUN), tmp_path / "reports", None)
        assert "raw-drop" in capsys.readouterr().out
