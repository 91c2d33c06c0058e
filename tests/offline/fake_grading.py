# SPDX-License-Identifier: GPL-2.0-or-later
"""A checkout with one small lab, a class, and the instructor's command: all real but the machines (fake_class.py)."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import factories

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab98-trouble"
EXERCISE = "ex1-block"


class FakeGrading:
    def __init__(self, top: Path) -> None:
        self.top, self.folder = top / "checkout", top / "class"
        lab = self.top / "labs" / LAB
        lab.mkdir(parents=True)
        shutil.copy(ROOT / "topology.yml", self.top)
        shutil.copy(ROOT / "tests/offline/errors/good.yml", lab / "lab.yml")
        (lab / "profile.py").write_text(factories.PROFILE)
        self.environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}", "COLUMNS": "200"}

    def hand_in(self, student: str, name: str | bytes, text: str | bytes = "*raw\nCOMMIT\n") -> Path:
        """Write one file of a student's exercise; its name may be what no text is."""
        folder = self.folder / student / EXERCISE
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / os.fsdecode(name)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def command(self, *words: str) -> list[str]:
        python = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "fake_class", "--junitxml=j.xml"]
        return [*python, "--testinfra", "--lab", LAB, "--submissions", str(self.folder), *words]

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.top,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=100,
        )

    def junit(self) -> dict[str, ElementTree.Element | None]:
        """What became of each test: None, or its failure, error or skipped element."""
        cases = ElementTree.parse(self.top / "j.xml").iter("testcase")
        return {case.get("name"): next((part for part in case if part.tag != "system-out"), None) for case in cases}

    @property
    def results(self) -> Path:
        return self.top / "reports" / LAB / "grading"

    def marks(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO((self.results / "marks.csv").read_text())))
