# SPDX-License-Identifier: GPL-2.0-or-later
"""A student's walk through an exercise from the bundle alone: its files, its fwlab, its machines."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.grading.student_bundle import write_bundle
from tests import ROOT

from .conftest import LAB, OFFSET, PROJECT, STAND, Checkout

pytestmark = pytest.mark.live

EXERCISE = "ex1-one-host"
#: Runs the bundle's own package, not this checkout's.
START = "import fwlab, sys; assert fwlab.__file__.startswith({top!r}); from fwlab.cli.entry import main; main()"
SOLVED = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"


class Unpacked(Checkout):
    """The bundle in a folder of its own, with the boxes and the packages of this checkout."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        (top / ".fwlab").mkdir()
        shutil.copy(ROOT / ".fwlab" / "images.json", top / ".fwlab")
        (top / ".venv").symlink_to(sys.prefix)
        self.environment["PYTHONPATH"] = str(top)
        # The machines of the other tests are those of the same lab, and may be up.
        self.environment["FWLAB_PORT_OFFSET"] = str(OFFSET + 1000)

    def fwlab_command(self, *words: str) -> list[str]:  # type: ignore[override]
        return [sys.executable, "-c", START.format(top=str(self.top)), *words]


@pytest.fixture
def student(tmp_path: Path) -> Iterator[Unpacked]:
    labs = list(dict.fromkeys([LAB, STAND]))
    with tarfile.open(write_bundle(PROJECT, labs, tmp_path)) as tar:
        tar.extractall(tmp_path, filter="data")
    unpacked = Unpacked(tmp_path / f"fwlab-{'-'.join(labs)}")
    unpacked.vagrant("up", STAND)
    yield unpacked
    unpacked.vagrant("destroy", "-f", STAND)


def test_an_exercise_is_started_predicted_failed_and_solved(student: Unpacked) -> None:
    work = student.top / "labs" / LAB / "work" / EXERCISE
    assert not list(student.top.glob("labs/*/rulesets/*/reference"))
    assert student.fwlab("start", LAB, EXERCISE).returncode == 0
    assert student.fwlab("predict", LAB, EXERCISE, "250000").returncode == 0

    first = student.fwlab("check", LAB, EXERCISE, "--machines", STAND)
    assert first.returncode == 1, first.stdout + first.stderr
    (work / "rules.iptables").write_text(SOLVED)
    second = student.fwlab("check", LAB, EXERCISE, "--machines", STAND)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "You predicted 250.0 kpps, measured" in " ".join(second.stdout.split())

    page = (student.top / "reports" / LAB / "check" / "report.html").read_text()
    assert re.search(r'aria-label="capacity of ex1-one-host: predicted 250.0 kpps, measured [\d.]+ kpps', page)
