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
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from xml.etree import ElementTree

import pytest
from rich.console import Console

from fwlab.cli import grade
from fwlab.cli.main import main
from tests import ROOT
from tests.fakes import factories
from tests.fakes.fake_class import fake_machines
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
        with self._inside(environment) as (out, err):
            code = pytest.main([*WITHOUT, *own, "--testinfra", *words])
        return SimpleNamespace(returncode=int(code), stdout=out.getvalue(), stderr=err.getvalue())

    def fwlab(self, *words: str, **environment: str) -> SimpleNamespace:
        """Run `fwlab` in this process, on fake machines."""
        with (
            self._inside(environment) as (out, err),
            mock.patch.object(sys, "argv", ["fwlab", *words]),
            mock.patch.object(grade, "out", Console(file=out)),  # those of the module have the streams of its import
            mock.patch.object(grade, "err", Console(file=err)),
            pytest.raises(SystemExit) as left,
        ):
            main()
        return SimpleNamespace(returncode=left.value.code, stdout=out.getvalue(), stderr=err.getvalue())

    @contextlib.contextmanager
    def _inside(self, environment: dict[str, str]) -> Iterator[tuple[io.StringIO, io.StringIO]]:
        """The checkout, with fake machines. Yields what goes to standard output and error."""
        hooks, handler = sys.meta_path[:], signal.getsignal(signal.SIGTERM)
        with (
            mock.patch.dict(os.environ, {"COLUMNS": "200", **environment}),
            contextlib.chdir(self.top),
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
            fake_machines(),
        ):
            yield out, err
        sys.meta_path[:] = hooks
        signal.signal(signal.SIGTERM, handler)

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
