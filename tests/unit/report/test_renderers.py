# SPDX-License-Identifier: GPL-2.0-or-later
"""The registry of renderers: built-in ones, a plug-in's, and a run judged once for all of them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from fwlab.model.registry import IncompleteKind, Registry
from fwlab.report import files, report_rows
from fwlab.report.files import RENDERERS, write_report
from fwlab.report.model import build_model
from fwlab.report.renderers.terminal import show
from tests import ROOT
from tests.fakes.factories import RANGES, a_full_run, a_lab

PLUGIN = ROOT / "tests/contract/plugin/renderer"
LAB = "lab03-ipset"
RUN = ROOT / "results" / LAB / "2026-11-20-full.json"


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


class TestPlugIn:
    def test_its_file_is_part_of_every_report(self, tmp_path: Path) -> None:
        done = report(tmp_path, "--json")
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["list.txt", "report.html", "run.json"]
        cases = [case["id"] for case in json.loads(done.stdout)["cases"]]
        lines = (tmp_path / "list.txt").read_text().splitlines()
        assert [line.split(":")[0] for line in lines] == cases

    def test_it_can_be_printed(self, tmp_path: Path) -> None:
        done = report(tmp_path, "--format", "plain-list")
        assert done.returncode == 0, done.stderr
        assert done.stdout == (tmp_path / "list.txt").read_text()

    def test_without_it_there_is_no_such_format(self, tmp_path: Path) -> None:
        done = report(tmp_path, "--format", "plain-list", plugin=False)
        assert done.returncode == 2
        known = "check-json, html, json, markdown, plots, terminal"
        assert done.stderr == f"fwlab: unknown format plain-list\n  next: use one of: {known}\n"


class TestBuiltIn:
    MODEL = build_model(a_lab(RANGES), a_full_run(a_lab(RANGES)))

    @pytest.mark.parametrize(
        ("name", "part"),
        [
            ("check-json", '"id": "ex1-block"'),
            ("html", "<code title="),
            ("json", '"id": "raw-drop"'),
            ("markdown", "| Raw drop |"),
            ("plots", "<svg"),
            ("terminal", "raw-drop"),
        ],
    )
    def test_each_shows_the_run(self, name: str, part: str) -> None:
        text = RENDERERS[name].render(self.MODEL)
        assert text.endswith("\n")
        assert part in text

    def test_one_without_its_method_is_refused(self) -> None:
        class Silent:
            name, file = "silent", None

        with pytest.raises(IncompleteKind, match="silent.py: render missing"):
            Registry("renderer", [("silent.py", Silent())], ("file", "render"))


class TestModel:
    def test_a_run_is_judged_once_for_all_renderers(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        calls: list[str] = []
        real = report_rows.judge_cases
        monkeypatch.setattr(report_rows, "judge_cases", lambda *given: calls.append("judged") or real(*given))
        model = build_model(a_lab(RANGES), a_full_run(a_lab(RANGES)))
        write_report(model, tmp_path)
        show(model, Console(quiet=True))
        for renderer in RENDERERS.values():
            renderer.render(model)
        assert calls == ["judged"]

    def test_a_fault_in_a_renderer_does_not_lose_the_run(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        faulty = dataclasses.replace(RENDERERS["html"], render=lambda _model: 1 / 0)
        monkeypatch.setattr(files, "RENDERERS", {"html": faulty})
        with pytest.raises(ZeroDivisionError):
            write_report(TestBuiltIn.MODEL, tmp_path)
        assert (tmp_path / "run.json").exists()
