# SPDX-License-Identifier: GPL-2.0-or-later
"""A checkout with one small lab, a class, and a real grading on fake machines (fake_class.py)."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from xml.etree import ElementTree

import pytest
from rich.console import Console

from fwlab.cli import grade
from fwlab.cli.main import main
from fwlab.grading import engine, grader
from tests import ROOT
from tests.fakes import factories, fake_class
from tests.fakes.hand_ins import RULES

LAB = "lab98-trouble"
EXERCISE = "ex1-block"
#: Plugins that a grading does without. At its end the second collects the garbage of this whole process.
WITHOUT = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")


class FakeGrading:
    def __init__(self, top: Path) -> None:
        self.top, self.folder = top / "checkout", top / "class"
        self.add_lab(LAB)
        shutil.copy(ROOT / "topology.yml", self.top)
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}

    def add_lab(self, name: str) -> Path:
        """A small lab, without rulesets; returns its folder."""
        lab = self.top / "labs" / name
        lab.mkdir(parents=True)
        (lab / "lab.yml").write_text((ROOT / "tests/data/errors/good.yml").read_text().replace(LAB, name))
        (lab / "profile.py").write_text(factories.PROFILE)
        return lab

    def hand_in(self, student: str, name: str | bytes, text: str | bytes = "*raw\nCOMMIT\n") -> Path:
        """Write one file of a student's exercise. Its name may be bytes that are not UTF-8."""
        folder = self.folder / student / EXERCISE
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / os.fsdecode(name)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def hand_in_all(self, **words: str) -> None:
        """Hand in, for each student, a ruleset that makes the fake machines do what the word says."""
        for who, word in words.items():
            self.hand_in(who, "rules.iptables", f"# on the DUT: {word}\n{RULES}")

    def run(self, *words: str, **environment: str) -> SimpleNamespace:
        """Grade the class."""
        return self.call("--lab", LAB, "--submissions", str(self.folder), *words, **environment)

    def call(self, *words: str, **environment: str) -> SimpleNamespace:
        """Run pytest in this process, because a new process would spend most of its time on imports."""
        own = ["--capture=sys", "--rootdir", str(self.top), "-c", os.devnull, "--junitxml", str(self.top / "j.xml")]
        out, err = io.StringIO(), io.StringIO()
        hooks, handler = sys.meta_path[:], signal.getsignal(signal.SIGTERM)
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": "200", **environment}))
            stack.enter_context(contextlib.chdir(self.top))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            for module, name in ((grader, "open_session"), (engine, "write_report")):
                stack.enter_context(mock.patch.object(module, name, getattr(module, name)))
            stack.enter_context(mock.patch.object(grader.Grader, "host"))
            code = pytest.main([*WITHOUT, *own, "--testinfra", *words], plugins=[fake_class])
        sys.meta_path[:] = hooks
        signal.signal(signal.SIGTERM, handler)
        return SimpleNamespace(returncode=int(code), stdout=out.getvalue(), stderr=err.getvalue())

    def fwlab(self, *words: str, **environment: str) -> SimpleNamespace:
        """Run `fwlab` in this process, on fake machines."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": "200", **environment}))
            stack.enter_context(contextlib.chdir(self.top))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            stack.enter_context(mock.patch.object(grader, "open_session", fake_class.fake_session))
            stack.enter_context(mock.patch.object(grader.Grader, "host", return_value=fake_class.FakeHost()))
            stack.enter_context(mock.patch.object(sys, "argv", ["fwlab", *words]))
            for console in ("out", "err"):  # made when the module was imported, with the streams of that time
                stack.enter_context(mock.patch.object(grade, console, Console(file=out if console == "out" else err)))
            with pytest.raises(SystemExit) as left:
                main()
        return SimpleNamespace(returncode=left.value.code, stdout=out.getvalue(), stderr=err.getvalue())

    def junit(self) -> dict[str, ElementTree.Element | None]:
        """By test: its failure, error or skipped element, or None."""
        cases = ElementTree.parse(self.top / "j.xml").iter("testcase")
        return {case.get("name"): next((part for part in case if part.tag != "system-out"), None) for case in cases}

    @property
    def results(self) -> Path:
        return self.top / "reports" / LAB / "grading"

    def marks(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO((self.results / "marks.csv").read_text())))

    def verdicts(self) -> dict[str, str]:
        """By student, the verdict in marks.csv."""
        return {row["who"]: row["verdict"] for row in self.marks()}
