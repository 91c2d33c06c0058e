# SPDX-License-Identifier: GPL-2.0-or-later
"""The registry of renderers: built-in ones, a plug-in's, and a run judged once for all of them."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fwlab.checkout.raw_results import read_document
from fwlab.report import files, report_rows
from fwlab.report.files import RENDERERS, write_report
from fwlab.report.model import build_model
from tests import ROOT
from tests.fakes.factories import RANGES, a_full_run, a_lab

PLUGIN = ROOT / "tests/contract/plugin/renderer"
LAB = "lab03-ipset"
RUN = ROOT / "results" / LAB / "2026-11-20-full.json.gz"


def report(output: Path, *words: str, plugin: bool = True) -> subprocess.CompletedProcess[str]:
    """Run `fwlab report` on a published run in a new process, because entry points are looked up at its start."""
    paths = [str(ROOT), *([str(PLUGIN)] if plugin else [])]
    return subprocess.run(
        [sys.executable, "-m", "fwlab.cli.entry", "report", LAB, str(RUN), "--output", str(output), *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_plug_ins_file_is_part_of_every_report_and_can_be_printed(tmp_path: Path) -> None:
    done = report(tmp_path, "--format", "plain-list")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list.txt", "report.html", "run.json"]
    assert done.stdout == (tmp_path / "list.txt").read_text()
    cases = [case["id"] for case in json.loads(read_document(RUN))["cases"]]
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == cases


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    done = report(tmp_path, "--format", "plain-list", plugin=False)
    assert done.returncode == 2
    known = "check-json, html, json, markdown, plots, terminal"
    assert done.stderr == f"fwlab: unknown format plain-list\n  next: use one of: {known}\n"


PARTS = {
    "check-json": '"id": "ex1-block"',
    "html": "<code title=",
    "json": '"id": "raw-drop"',
    "markdown": "| Raw drop |",
    "plots": "<svg",
    "terminal": "raw-drop",
}


def test_a_run_is_judged_once_and_shown_by_each_renderer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[str] = []
    real = report_rows.judge_cases
    monkeypatch.setattr(report_rows, "judge_cases", lambda *given: calls.append("judged") or real(*given))
    model = build_model(a_lab(RANGES), a_full_run(a_lab(RANGES)))
    write_report(model, tmp_path)
    for name, part in PARTS.items():
        text = RENDERERS[name].render(model)
        assert text.endswith("\n")
        assert part in text
    assert calls == ["judged"]


def test_a_fault_in_a_renderer_does_not_lose_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    faulty = dataclasses.replace(RENDERERS["html"], render=lambda _model: 1 / 0)
    monkeypatch.setattr(files, "RENDERERS", {"html": faulty})
    with pytest.raises(ZeroDivisionError):
        write_report(build_model(a_lab(), a_full_run(a_lab())), tmp_path)
    assert (tmp_path / "run.json").exists()
