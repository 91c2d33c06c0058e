# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of what makes something of a run: which run, what was written, what was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.host.project import Project, find_project
from fwlab.measure.saved_runs import command, reports_folder
from fwlab.model.errors import EXIT_PASS, EXIT_USAGE, BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run

LAB = "lab03-ipset"
RUN = Path(__file__).resolve().parents[2] / "results" / LAB / "2026-11-20-full.json"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch):
    def call(write, *arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["made-up", *arguments])
        return command("made-up", "Makes something up.", write)

    return call


def test_what_was_written_is_named_as_the_project_has_it(called, capsys: pytest.CaptureFixture) -> None:
    def write(project: Project, lab: Lab, run: Run) -> list[Path]:
        assert (lab.id, run.lab) == (LAB, LAB)
        return [project.root / "results" / "one.json", lab.folder / "README.md"]

    assert called(write, LAB, str(RUN)) == EXIT_PASS
    assert capsys.readouterr() == (f"written: results/one.json\nwritten: labs/{LAB}/README.md\n", "")


def test_without_a_file_it_is_the_labs_latest_run(called, capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("fwlab.measure.saved_runs.reports_folder", lambda _project, lab_id: tmp_path / lab_id)
    latest = tmp_path / LAB / "run.json"
    assert called(lambda *_: [], LAB) == EXIT_USAGE
    assert capsys.readouterr().err.startswith(f"made-up: {latest}: No such file")
    latest.parent.mkdir()
    latest.write_bytes(RUN.read_bytes())
    seen: list[Run] = []
    assert called(lambda _project, _lab, run: seen.append(run) or [], LAB) == EXIT_PASS
    assert seen[0].started == Run.model_validate_json(RUN.read_text()).started


def test_what_refuses_the_run_says_so(called, capsys: pytest.CaptureFixture) -> None:
    def refuse(*_: object) -> list[Path]:
        raise BadInput("the run has cases in doubt: one", "fwlab run LAB")

    assert called(refuse, LAB, str(RUN)) == EXIT_USAGE
    said, complaint = capsys.readouterr()
    assert (said, complaint.startswith("made-up: the run has cases in doubt: one")) == ("", True)


def test_reports_lie_in_the_project() -> None:
    project = find_project()
    assert reports_folder(project, LAB) == project.root / "reports" / LAB
