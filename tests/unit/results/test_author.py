# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tools`: publish a run, renew pages, measure how well figures repeat."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import SUFFIX, read_document
from fwlab.cli import main
from fwlab.judge.statistics import Figure
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run, published_files
from fwlab.model.errors import EXIT_PASS, EXIT_USAGE, BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.model.systems import on_system
from fwlab.testbed import machine_record
from tests import ROOT
from tests.checkout import lab_named
from tools import publish as publishing
from tools import repeatability
from tools.__main__ import app
from tools.publish import publish

LAB = "lab03-ipset"
RUN = ROOT / "results" / LAB / "2026-11-20-full.json.gz"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch):
    """Run `python -m tools ...`; the exit code."""

    def call(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["tools", *words])
        with pytest.raises(SystemExit) as left:
            main.main(app)
        return left.value.code or EXIT_PASS

    return call


def test_the_labs_latest_run_is_published_unless_one_is_named(called, monkeypatch, capsys, tmp_path: Path) -> None:
    seen: list[str] = []

    def write(project: Project, lab: Lab, run: Run) -> list[Path]:
        seen.append(run.started)
        return [project.root / "results" / "one.json", lab.folder / "README.md"]

    latest = tmp_path / LAB / "run.json"
    monkeypatch.setattr(publishing, "latest_run", lambda _project, lab: tmp_path / lab.id / "run.json")
    monkeypatch.setattr(publishing, "publish", write)
    assert called("publish", LAB) == EXIT_USAGE
    assert capsys.readouterr().err.startswith(f"fwlab: {latest}: No such file")
    latest.parent.mkdir()
    latest.write_text(load_run(RUN, LAB).model_copy(update={"started": "today"}).model_dump_json())
    assert called("publish", LAB) == called("publish", LAB, str(RUN)) == EXIT_PASS
    assert seen == ["today", load_run(RUN, LAB).started]
    assert capsys.readouterr() == (f"written: results/one.json\nwritten: labs/{LAB}/README.md\n" * 2, "")


class TestPublish:
    @pytest.fixture
    def project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
        monkeypatch.setattr(publishing, "untraceable", lambda *_: None)
        shutil.copytree(ROOT / "labs" / LAB, tmp_path / "labs" / LAB, ignore=shutil.ignore_patterns("README.md"))
        shutil.copy(ROOT / "topology.yml", tmp_path)
        return Project(tmp_path)

    def written(self, project: Project, readme: str, doubt: bool = False) -> list[str]:
        (project.root / "README.md").write_text(readme)
        lab, run = load_lab(project, LAB), load_run(RUN, LAB)
        if doubt:
            run.cases[0].problems.append("a node died")
        return [str(path.relative_to(project.root)) for path in publish(project, lab, run)]

    def test_the_run_is_kept_and_the_pages_are_renewed(self, project: Project) -> None:
        written = self.written(project, "[[[cog cog.outl('new') ]]]\n[[[end]]]\n")
        assert written[:2] == [f"results/{LAB}/published.json.gz", "README.md"]
        assert "new" in (project.root / "README.md").read_text()

    def test_a_run_in_doubt_writes_nothing(self, project: Project) -> None:
        with pytest.raises(BadInput, match="in doubt"):
            self.written(project, "", doubt=True)
        assert not (project.root / "results").exists()


def test_a_second_series_of_a_day_leaves_the_first_as_it_is(tmp_path: Path) -> None:
    project, lab = SimpleNamespace(root=tmp_path), SimpleNamespace(id="lab03-ipset")
    written = [repeatability.keep_document(project, lab, {"number": number}) for number in range(3)]
    assert len(set(written)) == 3
    assert [json.loads(read_document(path))["number"] for path in written] == [0, 1, 2]
    assert written[2].name.endswith(f"-3-repeatability{SUFFIX}")


class TestRepeatability:
    @pytest.fixture
    def measured(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
        """The cases that sessions were asked to measure, on machines that answer with an old run."""
        names: list[str] = []

        @contextlib.contextmanager
        def session(context: RunContext, _tell: object) -> Iterator[SimpleNamespace]:
            path = published_files(context.project, context.lab)[-1]
            found = load_run(path, context.lab.id)
            run = found.model_copy(update={"cases": []})

            def measure_cases(tasks: list) -> None:
                names.extend(task.id for task in tasks)
                run.cases.extend(case for case in found.cases if case.id in {task.id for task in tasks})

            yield SimpleNamespace(run=run, measure_cases=measure_cases)

        monkeypatch.setattr(repeatability, "open_session", session)
        monkeypatch.setattr(repeatability, "busy_host", contextlib.nullcontext)
        monkeypatch.setattr(repeatability, "keep_document", lambda *_: tmp_path / "repeatability.json")
        return names

    def test_a_lab_is_measured_by_its_quick_cases(
        self, called, measured: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FWLAB_DUT", "linux")
        monkeypatch.setattr(machine_record, "recorded_boxes", lambda *_: {})  # whatever runs in this checkout
        assert called("repeatability", LAB) == EXIT_PASS
        lab = on_system(lab_named(LAB), "linux")
        quick = [case.id for case in lab.cases.values() if case.quick]
        assert set(quick) <= set(measured)
        assert len(measured) % (repeatability.BOOTS * sum(repeatability.RUNS.values())) == 0

    def test_named_cases_are_measured_instead(self, called, measured: list[str]) -> None:
        assert called("repeatability", LAB, "ipset-1") == EXIT_PASS
        assert set(measured) == {"ipset-1"}

    def test_an_unknown_case_is_reported_before_anything_starts(self, called, measured: list[str], capsys) -> None:
        assert called("repeatability", LAB, "nothing") == EXIT_USAGE
        assert "has no case nothing" in capsys.readouterr().err
        assert not measured

    def test_a_lab_without_quick_cases_asks_for_names(self) -> None:
        lab = lab_named(LAB)
        slow = lab.model_copy(update={"single_cases": [], "sweeps": []})
        with pytest.raises(BadInput, match="marks no case as quick"):
            repeatability.benchmark_cases(slow, [])

    def test_spreads_are_in_the_cases_own_metric(self) -> None:
        lab = lab_named("lab02-conntrack")
        run = load_run(ROOT / "results" / lab.id / "published.json.gz", lab.id)
        case = next(case for case in lab.cases.values() if case.metric == "connections")
        [found] = repeatability.document(lab, {"idle": [run, run], "busy": []}, [case])["spreads"].values()
        spreads = found["connections"]
        assert len(spreads["idle"]["medians_cps"]) == 2
        assert spreads["idle"]["spread_over_runs"] == 0
        assert spreads["busy"]["spread_over_runs"] is None
        assert spreads["chance_of_failure"] == 0
        assert spreads["verdicts"] == {"pass": 2}, "one a run"

    @pytest.mark.parametrize(
        ("medians", "counts", "between", "low", "high"),
        [
            ([0.5, 0.5], None, (0.4, 0.6), 0.0, 0.0),
            ([0.5, 0.5], None, (0.6, 1.0), 1.0, 1.0),
            ([0.49, 0.51], None, (0.45, 0.55), 0.05, 0.1),
            ([0.49, 0.51] * 10, None, (0.45, 0.55), 0.01, 0.02),
            ([0.5] * 10, (500, 1000), (0.48, 0.52), 0.0, 0.0),
            ([0.5, 0.5], (500, 1000), (0.48, 0.52), 0.15, 0.25),
            ([0.02, 0.02], (20, 1000), (None, 0.03), 0.005, 0.02),
        ],
        ids=["equal", "outside", "scattered", "many runs", "many equal runs", "few packets", "one bound"],
    )
    def test_chance_alone_fails_a_range_that_often(
        self, medians: list[float], counts: tuple[int, int] | None, between: tuple, low: float, high: float
    ) -> None:
        figures = [Figure([median], counts) for median in medians]
        assert low <= repeatability.chance_of_failure(figures, between) <= high
