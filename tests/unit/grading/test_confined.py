# SPDX-License-Identifier: GPL-2.0-or-later
"""Strangers' files are unpacked and validated in a child process; what exceeds its limits costs only its student."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading import class_folder, confined
from fwlab.grading import submissions as reading
from fwlab.grading.confined import ChildReport, DiskFull, run_confined
from fwlab.grading.submissions import Submissions, as_recorded
from fwlab.grading.works import handed_in, unreadable
from fwlab.model.errors import BadInput, CannotMeasure
from tests.checkout import PROJECT, TOPOLOGY, lab_named
from tests.fakes.fake_grading import EXERCISE, FakeGrading
from tests.fakes.hand_ins import RULES, make_tar, make_zip

ZERO = "ZeroDivisionError: integer division or modulo by zero"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "CPU_S", 1)
    monkeypatch.setattr(confined, "MEMORY", 64 << 20)


def spin() -> None:
    while True:
        pass


def hoard() -> None:
    held = []
    while True:
        held.append(bytes(1 << 20))


def wait() -> None:
    time.sleep(600)


def disk_full() -> None:
    raise DiskFull("/tmp: cannot copy a submission: No space left on device", "free space there, or set TMPDIR")


# ---- one child ------------------------------------------------------------------------------------------------


def test_a_child_tells_what_it_found() -> None:
    assert run_confined(lambda send: [send({"a": "\udcff\n"}), send([1])]) == ChildReport([{"a": "\udcff\n"}, [1]])
    assert run_confined(lambda send: [send("x" * 100_000) for _ in range(20)]) == ChildReport(["x" * 100_000] * 20)
    assert run_confined(lambda send: None) == ChildReport([])
    assert run_confined(lambda send: [send("at"), 1 // 0]) == ChildReport(["at"], bug=ZERO), "a bug is no limit"


@pytest.mark.parametrize(
    ("work", "limit"),
    [
        (spin, "it takes more than 1 s of CPU time to read"),
        (hoard, "it takes more than 64 MiB of memory to read"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "its reader ended by signal 11"),
        (lambda: confined._exit(9), "its reader ended with exit code 9"),
        (wait, "it takes more than 0.3 s to read"),
    ],
)
def test_a_child_is_ended_and_what_it_told_before_is_kept(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], None], limit: str
) -> None:
    if work is wait:
        monkeypatch.setattr(confined, "WALL_S", 0.3)
    assert run_confined(lambda send: [send("at"), work()]) == ChildReport(["at"], limit=limit)


def test_no_child_goes_on_as_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traffic profile of a lab is code, and may have done this."""
    monkeypatch.setattr(os, "_exit", None)
    assert run_confined(lambda send: send(1)) == ChildReport([1])
    monkeypatch.setattr(confined, "_exit", None)
    assert run_confined(lambda send: send(1)) == ChildReport([1], limit="its reader ended by signal 9")


def test_no_child_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    children, fork = list[int](), os.fork
    monkeypatch.setattr(os, "fork", lambda: children.append(child := fork()) or child)
    run_confined(lambda send: None)
    monkeypatch.setattr(confined.select, "select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_confined(lambda send: time.sleep(600))
    assert len(children) == 2
    for child in children:  # other tests may have children of their own
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


# ---- a class --------------------------------------------------------------------------------------------------

#: What happens where a file of these words is validated, or an archive unpacked that has one in its name.
COSTLY = {"spin": spin, "hoard": hoard, "bug": lambda: 1 // 0, "full": disk_full}


def act(text: str) -> None:
    for word, done in COSTLY.items():
        if word in text:
            done()


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> None:
    validate, unpack = reading.texts_of, class_folder.unpack

    def texts_of(files: Iterator[tuple[str, bytes]], **validated: bool) -> object:
        def looked_at() -> Iterator[tuple[str, bytes]]:
            for name, data in files:
                act(data.decode())
                yield name, data

        return validate(looked_at(), **validated)

    def unpacked(archive: Path, folder: Path, *limits: object) -> None:
        unpack(archive, folder, *limits)
        act(archive.name)

    monkeypatch.setattr(reading, "texts_of", texts_of)
    monkeypatch.setattr(class_folder, "unpack", unpacked)
    monkeypatch.setattr(confined, "CLASS", 1)


@pytest.mark.usefixtures("costly")
def test_what_is_costly_fails_one_exercise_of_one_student(submissions: Submissions, tmp_path: Path) -> None:
    lab = lab_named("lab03-ipset")
    context = SimpleNamespace(project=PROJECT, topology=TOPOLOGY, lab=lab)
    first, second, third, fourth, *_ = [exercise.id for exercise in lab.exercises]
    for who, exercise, name, text in (
        ("ada", first, "a.iptables", RULES),
        ("ada", first, "b.iptables", f"# spin\n{RULES}"),
        ("ada", second, "b.nft", "# hoard\n"),
        ("ada", third, "a.iptables", RULES),
        ("bob", first, "a.iptables", RULES),
        ("bob", second, "a.nft", "# bug\n"),
    ):
        (tmp_path / who / exercise).mkdir(parents=True, exist_ok=True)
        (tmp_path / who / exercise / name).write_text(text)
    make_zip(tmp_path / "cid-spin.zip", {f"{first}/a.iptables": RULES})
    make_tar(tmp_path / "dan.tar.gz", {f"{first}/a.iptables": RULES})
    works = {work.name: work for work in handed_in(context, tmp_path, submissions)}
    for name, reason in {
        f"ada/{first}": "b.iptables: it takes more than 1 s of CPU time to read",
        f"ada/{second}": "b.nft: it takes more than 64 MiB of memory to read",
        f"ada/{third}": None,
        f"ada/{fourth}": f"nothing handed in: there is no ada/{fourth}",
        f"bob/{first}": None,
        f"cid-spin/{first}": "submission cannot be read: cid-spin.zip: it takes more than 1 s of CPU time to read",
        f"dan/{first}": None,
    }.items():
        assert unreadable(works[name], context) == reason
    assert "b.iptables" in as_recorded(works[f"ada/{first}"].handed_in)
    with pytest.raises(CannotMeasure, match="internal error while reading a submission: ZeroDivisionError"):
        unreadable(works[f"bob/{second}"], context)
    assert not (submissions.scratch / class_folder.INSIDE).exists()


def test_a_continued_grading_remembers_the_limit(grading: FakeGrading, request: pytest.FixtureRequest) -> None:
    """On a faster host the file might be read in time. The mark would then depend on where it was given."""
    grading.hand_in("ann", "rules.iptables", f"# spin\n{RULES}")
    grading.hand_in("bob", "rules.iptables", RULES)
    request.getfixturevalue("costly")
    assert grading.run().returncode == 1
    marks = grading.marks()
    assert [(row["who"], row["verdict"]) for row in marks] == [("ann", "fail"), ("bob", "pass")]
    assert "rules.iptables: it takes more than 1 s of CPU time to read" in marks[0]["reason"]
    request.getfixturevalue("monkeypatch").undo()
    assert "measured:" not in grading.run("-s", "--resume").stdout
    assert grading.marks() == marks


# ---- what an instructor has of a class ------------------------------------------------------------------------


@pytest.mark.usefixtures("costly")
@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("spin.zip", BadInput, "spin.zip: it takes more than 1 s of CPU time to read"),
        ("hoard.zip", BadInput, "hoard.zip: it takes more than 64 MiB of memory to read"),
        ("bug.zip", CannotMeasure, f"bug.zip: internal error while reading it: {ZERO}"),
        ("full.zip", DiskFull, "No space left on device"),
    ],
)
def test_an_archive_of_a_class_is_unpacked_in_a_child_and_nothing_is_left(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, name: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=re.escape(said)):
        handed_in(setting, make_zip(tmp_path / name, {f"ada/{EXERCISE}/rules.iptables": RULES}), submissions)
    assert list(submissions.scratch.iterdir()) == []


@pytest.mark.usefixtures("costly")
def test_a_grading_of_such_an_archive_ends_with_the_next_command(grading: FakeGrading, tmp_path: Path) -> None:
    grading.folder = make_zip(tmp_path / "spin.zip")
    done = grading.run()
    assert done.returncode == 4
    assert "spin.zip: it takes more than 1 s of CPU time to read\n  next: download it again" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (grading.top / "reports").exists()


def test_a_larger_class_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []
    monkeypatch.setattr(confined, "run_confined", lambda _, more: times.append(more) or ChildReport([{"found": 1}]))
    for size in (0, 12 << 20, 4 << 30):
        confined.confined_result(lambda: 1, size, "a.zip", "")
    assert times == [6, 9, 60]


@pytest.mark.usefixtures("costly")
def test_metadata_of_an_export_is_read_in_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_folder, "yaml_in", lambda *_, **__: spin())
    (tmp_path / class_folder.METADATA).write_text("submission_1: {}\n")
    with pytest.raises(BadInput, match=r"submission_metadata.yml: it takes more than 1 s of CPU time to read"):
        class_folder.read_metadata(tmp_path / class_folder.METADATA)
