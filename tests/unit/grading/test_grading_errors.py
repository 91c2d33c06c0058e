# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrong arguments of a grading: pytest and `fwlab grade` give the same message before any machine starts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from fwlab.cli.main import main
from fwlab.model.errors import EXIT_USAGE
from tests.fakes.fake_grading import LAB, WITHOUT, FakeGrading

PYTEST = [*WITHOUT, "--testinfra", "--lab", LAB]


@pytest.fixture
def checkout(grading: FakeGrading) -> Path:
    """One small lab, and two folders that are no class."""
    for name in ("empty-class", "notes"):
        (grading.top / name).mkdir()
    (grading.top / "notes" / "notes.pdf").touch()
    return grading.top


NOTES = "notes.pdf: not read: neither a student's folder nor an archive"
Grade = Callable[..., tuple[int, str]]


@pytest.fixture
def grade(checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Grade:
    """What pytest or `fwlab grade` answers, without Vagrant in PATH, so that starting a machine would fail.

    In this process: a new one would spend most of its time on imports.
    """
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("PATH", str(checkout))
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])

    def call(words: list[str], run: Callable[[list[str]], int] = pytest.main) -> tuple[int, str]:
        code = run(words)
        said = "".join(capfd.readouterr())
        assert "Traceback" not in said
        assert "vagrant" not in said
        return int(code), said

    return call


def fwlab(words: list[str]) -> int:
    with mock.patch.object(sys, "argv", ["fwlab", *words]), pytest.raises(SystemExit) as left:
        main()
    return left.value.code


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ("no-class", "no folder no-class", "give --submissions the folder that holds one folder per student"),
        ("empty-class", "empty-class is empty", "put one folder per student into it"),
        ("notes", f"notes has no student's folder or archive; there is: {NOTES}", "put one folder per student into it"),
    ],
)
def test_class_folder_that_cannot_be_graded(grade: Grade, given: str, message: str, hint: str) -> None:
    code, said = grade(["grade", LAB, "--submissions", given], fwlab)
    assert code == EXIT_USAGE
    assert f"fwlab: {message}\n  next: {hint}\n" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--submissions", "no-class"], "ERROR: no folder no-class\n  next: give --submissions"),
        (["--lab", "lab99-none"], f"ERROR: unknown lab lab99-none; there are: {LAB}\n  next: fwlab list\n"),
        (["--part", "solution"], "argument --part/--fwlab-part: invalid choice: 'solution'"),
        (["--testbed", "cloud"], "ERROR: unknown testbed cloud\n  next: use auto, virtual or real\n"),
        (["-n", "2"], "belong together\n  next: --workers N for N sets of machines\n"),
        (["--workers", "0"], "ERROR: --workers 0: must be at least 1\n  next: "),
        (["--workers", "2", "--testbed", "real"], "ERROR: several workers are for the virtual testbed: "),
        (["--workers", "2", "--machines", LAB], "ERROR: --machines is for one worker: "),
        (["--workers", "99"], "ERROR: 99 workers need 198 cores, this host has "),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "ERROR: --workers is for this host, --scheduler for "),
        (
            ["--scheduler", "tcp://192.0.2.7:8786"],
            "ERROR: tcp://192.0.2.7:8786: without a key only this host is safe: ",
        ),
        (["--scheduler", "tls://192.0.2.7:8786"], "ERROR: tls://192.0.2.7:8786 needs a key\n  next: "),
        (["--scheduler", "tls://192.0.2.7:8786", "--key", "none"], "ERROR: none: No such file or directory\n  next: "),
        (["--scheduler", "somewhere"], "ERROR: somewhere: not the address of a scheduler\n  next: such as tls://"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_argument_of_pytest(grade: Grade, words: list[str], message: str) -> None:
    code, said = grade([*PYTEST, *words])
    assert (code, message in said) == (pytest.ExitCode.USAGE_ERROR, True), said


def test_invalid_profile_is_reported_before_a_machine_starts(grading: FakeGrading, grade: Grade) -> None:
    path = grading.top / "labs" / LAB / "profile.py"
    path.write_text(path.read_text().replace("198.19.0.9", "10.0.0.1"))
    grading.hand_in("anna", "rules.nft", "# nothing\n")
    code, said = grade([*PYTEST, "--submissions", str(grading.folder)])
    assert code == pytest.ExitCode.USAGE_ERROR
    where = f"labs/{LAB}/profile.py: stream 1, frame 1"
    assert f"ERROR: {where}: destination 10.0.0.1 is not a lab address\n  next: " in said


def test_a_class_is_collected_by_student(grading: FakeGrading, grade: Grade) -> None:
    """With submissions, the lab's own cases and rulesets are not collected."""
    grading.hand_in("anna", "rules.nft", "# nothing\n")
    code, said = grade([*PYTEST, "--submissions", str(grading.folder), "--collect-only", "-q"])
    assert code == 0, said
    assert "anna/" in said
    assert "test_case" not in said
    assert "test_grader_refuses" not in said
