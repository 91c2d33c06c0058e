# SPDX-License-Identifier: GPL-2.0-or-later
"""lab08's FreeBSD half on its own machines: quick cases hold, references pass, starts and mistakes fail.

The Linux half is among the labs of test_labs.py. Skipped where the box with FreeBSD is not built.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.measure.labs import load_lab
from fwlab.model.systems import on_system

from .conftest import PROJECT, ROOT, Checkout, document, new_checkout

pytestmark = pytest.mark.live

LAB, SYSTEM = "lab08-pf", "freebsd"
PART = on_system(load_lab(PROJECT, LAB), SYSTEM)


class FreeBsdCheckout(Checkout):
    """A checkout whose machines of lab08 have a DUT with FreeBSD."""

    name = LAB

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.environment["FWLAB_DUT"] = SYSTEM


@pytest.fixture(scope="module")
def freebsd() -> Iterator[Checkout]:
    images = ROOT / ".fwlab" / "images.json"
    if not images.exists() or "dut-freebsd" not in json.loads(images.read_text()):
        pytest.skip("the box dut-freebsd is not built: packer/build dut-freebsd")
    with new_checkout(FreeBsdCheckout) as checkout:
        checkout.vagrant("up", LAB)
        yield checkout


def test_quick_cases_are_measured_on_freebsd(freebsd: Checkout) -> None:
    found = document(freebsd.fwlab("run", LAB, "--quick", "--json"))
    assert found["dut"]["system"] == SYSTEM
    assert found["dut"]["kernel"].startswith("FreeBSD ")
    by_case = {case["id"]: case for case in found["cases"]}
    assert set(by_case) == {case.id for case in PART.cases.values() if case.quick}
    assert [case["problems"] for case in by_case.values() if case["problems"]] == []
    assert by_case["pf-none-1000"]["median"] < by_case["pf-basic-1000"]["median"] / 4


def test_its_exercises_grade_themselves(freebsd: Checkout) -> None:
    done = freebsd.pytest("--testinfra", "--lab", LAB, "-q")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    text = (freebsd.top / "reports" / LAB / "grading" / f"marks-{SYSTEM}.csv").read_text()
    marks = {(row["who"], row["exercise"]): row["verdict"] for row in csv.DictReader(io.StringIO(text))}
    wanted = {"start": "fail", "reference": "pass", "mistake": "fail"}
    assert marks == {(who, exercise.id): wanted[who] for who in wanted for exercise in PART.exercises}


def test_a_linux_exercise_names_the_system_that_it_needs(freebsd: Checkout) -> None:
    done = freebsd.fwlab("check", LAB, "ex1-protocol")
    assert done.returncode == 2
    assert "ex1-protocol is measured on a DUT with linux; this one runs another system" in done.stderr


def test_a_pf_conf_that_pfctl_refuses_is_shown_in_its_words(freebsd: Checkout) -> None:
    work = freebsd.top / "labs" / LAB / "work" / "ex4-table"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "pf.conf").write_text("pass from <nowhere> to any\nblock what\n")
    found = document(freebsd.fwlab("check", LAB, "ex4-table", "--json"))
    (exercise,) = found["exercises"]
    assert "pf.conf:2: syntax error" in exercise["refused"]


def test_a_pf_conf_that_blocks_everything_leaves_ssh_alone(freebsd: Checkout) -> None:
    work = freebsd.top / "labs" / LAB / "work" / "ex4-table"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "pf.conf").write_text("block drop quick all\n")
    found = document(freebsd.fwlab("check", LAB, "ex4-table", "--json"))
    (exercise,) = found["exercises"]
    assert (exercise["refused"], exercise["verdict"]) == (None, "fail")
    assert freebsd.run("dut", "uname -s").split() == ["FreeBSD"]
