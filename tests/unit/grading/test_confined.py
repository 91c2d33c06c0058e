# SPDX-License-Identifier: GPL-2.0-or-later
"""Strangers' files are unpacked and validated in a child process; what exceeds its limits costs only its student."""

from __future__ import annotations

import os
import re
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading import class_folder, confined
from fwlab.grading import submissions as reading
from fwlab.grading.confined import ChildReport, NoRoom, run_confined
from fwlab.grading.submissions import Submissions, as_recorded
from fwlab.grading.works import Work, handed_in, unreadable
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


# ---- one child ------------------------------------------------------------------------------------------------


def test_a_child_tells_what_it_found() -> None:
    assert run_confined(lambda tell: [tell({"a": "\udcff\n"}), tell([1])]) == ChildReport([{"a": "\udcff\n"}, [1]])
    assert run_confined(lambda tell: [tell("x" * 100_000) for _ in range(20)]) == ChildReport(["x" * 100_000] * 20)
    assert run_confined(lambda tell: None) == ChildReport([])


@pytest.mark.parametrize(
    ("work", "limit"),
    [
        (spin, "it takes more than 1 s of CPU time to read"),
        (hoard, "it takes more than 64 MiB of memory to read"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "its reader ended by signal 11"),
        (lambda: confined._exit(9), "its reader ended with exit code 9"),
    ],
)
def test_a_child_is_ended_and_what_it_told_before_is_kept(work: Callable[[], None], limit: str) -> None:
    assert run_confined(lambda tell: [tell("at"), work()]) == ChildReport(["at"], limit=limit)


def test_a_child_that_waits_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "WALL_S", 0.3)
    assert run_confined(lambda tell: [tell("at"), time.sleep(600)]) == ChildReport(
        ["at"], limit="it takes more than 0.3 s to read"
    )


def test_a_bug_is_no_limit() -> None:
    assert run_confined(lambda tell: [tell("at"), 1 // 0]) == ChildReport(["at"], bug=ZERO)


def test_no_child_goes_on_as_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traffic profile of a lab is code, and may have done this."""
    monkeypatch.setattr(os, "_exit", None)
    assert run_confined(lambda tell: tell(1)) == ChildReport([1])
    monkeypatch.setattr(confined, "_exit", None)
    assert run_confined(lambda tell: tell(1)) == ChildReport([1], limit="its reader ended by signal 9")


def test_no_child_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    children, fork = list[int](), os.fork
    monkeypatch.setattr(os, "fork", lambda: children.append(child := fork()) or child)
    run_confined(lambda tell: None)
    monkeypatch.setattr(confined.select, "select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_confined(lambda tell: time.sleep(600))
    assert len(children) == 2
    for child in children:  # other tests may have children of their own
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


# ---- a class --------------------------------------------------------------------------------------------------


def make_costly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that says so becomes costly to validate, and an archive of that name to unpack."""
    validate, unpack = reading.texts_of, class_folder.unpack

    def texts_of(files: Iterator[tuple[str, bytes]], **validated: bool) -> object:
        def looked_at() -> Iterator[tuple[str, bytes]]:
            for name, data in files:
                for word, act in ((b"spin", spin), (b"hoard", hoard), (b"bug", lambda: 1 // 0)):
                    if word in data:
                        act()
                yield name, data

        return validate(looked_at(), **validated)

    def unpacked(archive: Path, folder: Path, *limits: object) -> None:
        unpack(archive, folder, *limits)
        if "spin" in archive.name:
            spin()

    monkeypatch.setattr(reading, "texts_of", texts_of)
    monkeypatch.setattr(class_folder, "unpack", unpacked)


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> None:
    make_costly(monkeypatch)


def reasons(works: list[Work], context: SimpleNamespace) -> dict[str, str | None]:
    return {work.name: unreadable(work, context) for work in works}


@pytest.mark.usefixtures("costly")
def test_one_costly_file_fails_one_exercise_of_one_student(submissions: Submissions, tmp_path: Path) -> None:
    lab = lab_named("lab03-ipset")
    context = SimpleNamespace(project=PROJECT, topology=TOPOLOGY, lab=lab)
    first, second, third, *rest = [exercise.id for exercise in lab.exercises]
    for who in ("ada", "bob"):
        for exercise in (first, second, third):
            (tmp_path / who / exercise).mkdir(parents=True)
            (tmp_path / who / exercise / "a.iptables").write_text(RULES)
    (tmp_path / "ada" / first / "b.iptables").write_text(f"# spin\n{RULES}")
    (tmp_path / "ada" / second / "b.nft").write_text("# hoard\n")
    works = handed_in(context, tmp_path, submissions)
    found = reasons(works, context)
    assert {name: found[name] for name in found if found[name] is None} == dict.fromkeys(
        [f"ada/{third}", f"bob/{first}", f"bob/{second}", f"bob/{third}"]
    )
    assert found[f"ada/{first}"] == "b.iptables: it takes more than 1 s of CPU time to read"
    assert found[f"ada/{second}"] == "b.nft: it takes more than 64 MiB of memory to read"
    assert found[f"ada/{rest[0]}"] == f"nothing handed in: there is no ada/{rest[0]}"
    assert "b.iptables" in next(as_recorded(work.handed_in) for work in works if work.name == f"ada/{first}")


@pytest.mark.usefixtures("costly")
def test_one_costly_archive_fails_its_student(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path
) -> None:
    make_zip(tmp_path / "class" / "ada-spin.zip")
    make_tar(tmp_path / "class" / "bob.tar.gz")
    assert reasons(handed_in(setting, tmp_path / "class", submissions), setting) == {
        f"ada-spin/{EXERCISE}": "submission cannot be read: ada-spin.zip: it takes more than 1 s of CPU time to read",
        f"bob/{EXERCISE}": None,
    }
    assert not (submissions.scratch / class_folder.UNPACKED).exists()


@pytest.mark.usefixtures("costly")
def test_a_bug_of_ours_is_no_fault_of_the_student(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path
) -> None:
    (tmp_path / "class" / "ada" / EXERCISE).mkdir(parents=True)
    (tmp_path / "class" / "ada" / EXERCISE / "a.nft").write_text("# bug\n")
    (work,) = handed_in(setting, tmp_path / "class", submissions)
    with pytest.raises(CannotMeasure, match="internal error while reading a submission: ZeroDivisionError"):
        unreadable(work, setting)


def test_a_continued_grading_remembers_the_limit(tmp_path: Path) -> None:
    """On a faster host the file might be read in time. The mark would then depend on where it was given."""
    grading = FakeGrading(tmp_path)
    grading.hand_in("ann", "rules.iptables", f"# spin\n{RULES}")
    grading.hand_in("bob", "rules.iptables", RULES)
    with pytest.MonkeyPatch.context() as patch:
        make_costly(patch)
        assert grading.run().returncode == 1
    marks = grading.marks()
    assert [(row["who"], row["verdict"]) for row in marks] == [("ann", "fail"), ("bob", "pass")]
    assert "rules.iptables: it takes more than 1 s of CPU time to read" in marks[0]["reason"]
    done = grading.run("-s", "--resume")
    assert "measured:" not in done.stdout
    assert grading.marks() == marks


# ---- what an instructor has of a class ------------------------------------------------------------------------


def export(folder: Path, name: str) -> Path:
    """The whole class as one archive."""
    path = folder / name
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(f"Ada Example_11_assignsubmission_file/{EXERCISE}/rules.iptables", RULES)
    return path


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "CLASS", 1)
    unpack = class_folder.unpack

    def unpacked(archive: Path, folder: Path, *limits: object) -> None:
        unpack(archive, folder, *limits)
        for word, act in (("spin", spin), ("hoard", hoard), ("bug", lambda: 1 // 0), ("full", no_room)):
            if word in archive.name:
                act()

    monkeypatch.setattr(class_folder, "unpack", unpacked)


def no_room() -> None:
    raise NoRoom("/tmp: cannot copy a submission: No space left on device", "free space there, or set TMPDIR")


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("spin.zip", BadInput, "spin.zip: it takes more than 1 s of CPU time to read"),
        ("hoard.zip", BadInput, "hoard.zip: it takes more than 64 MiB of memory to read"),
        ("bug.zip", CannotMeasure, f"bug.zip: internal error while reading it: {ZERO}"),
        ("full.zip", NoRoom, "No space left on device"),
    ],
)
def test_an_archive_of_a_class_is_unpacked_in_a_child_and_nothing_is_left(
    submissions: Submissions, tmp_path: Path, name: str, error: type[Exception], said: str
) -> None:
    with (
        pytest.raises(error, match=re.escape(said)),
        class_folder.class_at(export(tmp_path, name), submissions.scratch),
    ):
        pass
    assert list(submissions.scratch.iterdir()) == []


@pytest.mark.usefixtures("tight")
def test_a_grading_of_such_an_archive_ends_with_the_next_command(tmp_path: Path) -> None:
    grading = FakeGrading(tmp_path)
    grading.folder = export(tmp_path, "spin.zip")
    done = grading.run()
    said = done.stdout + done.stderr
    assert (done.returncode, "Traceback" in said) == (4, False)
    assert "spin.zip: it takes more than 1 s of CPU time to read" in said
    assert "next: download it again" in said
    assert not (grading.top / "reports").exists()


def test_a_larger_class_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []
    monkeypatch.setattr(confined, "run_confined", lambda _, more: times.append(more) or ChildReport([{"found": 1}]))
    for size in (0, 12 << 20, 4 << 30):
        confined.confined_result(lambda: 1, size, "a.zip", "")
    assert times == [6, 9, 60]


def test_metadata_of_an_export_is_read_in_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "CLASS", 1)
    monkeypatch.setattr(class_folder, "yaml_in", lambda *_, **__: spin())
    (tmp_path / class_folder.METADATA).write_text("submission_1: {}\n")
    with pytest.raises(BadInput, match=r"submission_metadata.yml: it takes more than 1 s of CPU time to read"):
        class_folder.read_metadata(tmp_path / class_folder.METADATA)
