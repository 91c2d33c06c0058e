# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a class are joined, and stored results are judged again. The gradings ran on fake machines."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.grading.class_files import write_merged
from fwlab.grading.course import Course
from fwlab.grading.record import FILE, Similar, content_of, merged, read_record
from fwlab.grading.verify import Verified, verify
from fwlab.model.errors import BadInput, CannotMeasure
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading

COMMIT = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
#: Changes the entries of a record, as JSON.
Change = Callable[[list[dict]], None]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A checkout, and two parts of a class that were graded in it. Tests copy what they change."""
    grading = FakeGrading(tmp_path_factory.mktemp("graded"))
    for who, word in {"ann": "fine", "bob": "leaks", "cid": "idle"}.items():
        grading.hand_in(who, "rules.iptables", f"# on the DUT: {word}\n{COMMIT}")
    grading.run("--results", str(grading.top / "one"), "--traffic-seed", "7", "-k", "ann or bob")
    grading.run("--results", str(grading.top / "two"), "--traffic-seed", "7", "-k", "cid")
    return grading.top, grading.top / "one", grading.top / "two"


@pytest.fixture
def checkout(graded: tuple[Path, Path, Path], tmp_path: Path) -> Path:
    return shutil.copytree(graded[0], tmp_path / "copy")


def edit(folder: Path, change: Change) -> None:
    path = folder / FILE
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    change(entries)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def of_kind(entries: list[dict], kind: str) -> list[dict]:
    return [entry for entry in entries if entry["entry"] == kind]


def checked(top: Path, folder: str = "one") -> Verified:
    return verify(Project(top), top / folder)


def test_two_parts_are_joined(checkout: Path) -> None:
    found = write_merged([checkout / "one", checkout / "two"], checkout / "all", Course())
    assert list(found.students) == ["ann", "bob", "cid"]
    rows = (checkout / "all" / "marks.csv").read_text().splitlines()
    assert rows[0] == "who,exercise,verdict,passed,checks,reason,mark"
    assert [row.split(",")[:3] for row in rows[1:]] == [
        ["ann", EXERCISE, "pass"],
        ["bob", EXERCISE, "fail"],
        ["cid", EXERCISE, "inconclusive"],
    ]
    assert [row.rsplit(",", 1)[1] for row in rows[1:]] == ["core"] * 3
    assert (checkout / "all" / "students" / "cid" / "index.html").exists()
    assert checked(checkout, "all").judged == 3
    with pytest.raises(BadInput, match="holds a grading already"):
        write_merged([checkout / "one"], checkout / "all", Course())


def test_a_decided_result_replaces_an_open_one(checkout: Path) -> None:
    shutil.copytree(checkout / "two", checkout / "again")

    def passes(entries: list[dict]) -> None:
        of_kind(entries, "work")[0]["checks"][0]["outcome"] = "pass"

    edit(checkout / "again", passes)
    for folders in (("two", "again"), ("again", "two")):
        (work,) = merged([checkout / name for name in folders]).works.values()
        assert work.outcome == "pass"


def different_verdict(entries: list[dict]) -> None:
    of_kind(entries, "work")[0]["checks"][0]["outcome"] = "fail"


def different_files(entries: list[dict]) -> None:
    files = {"other.iptables": {"size": 1, "sha256": "0" * 64}}
    of_kind(entries, "student")[0]["files"][EXERCISE] = files
    of_kind(entries, "work")[0]["content"] = content_of(files)


def different_kernel(entries: list[dict]) -> None:
    of_kind(entries, "machines")[0]["run"]["dut"]["kernel"] = "5.10"


def different_image(entries: list[dict]) -> None:
    of_kind(entries, "machines")[0]["run"]["dut"]["image"] = {"nftables": "0.9"}


def different_lab_file(entries: list[dict]) -> None:
    entries[0]["files"][f"labs/{LAB}/lab.yml"] = "0" * 64


def different_checks(entries: list[dict]) -> None:
    entries[0]["exercises"][EXERCISE]["checks"]["delivered-attacker"]["between"] = [0, 5]


def different_lab(entries: list[dict]) -> None:
    entries[0]["lab"] = "lab97-other"


def nothing_measured(entries: list[dict]) -> None:
    entries[:] = [entry for entry in entries if entry["entry"] != "machines"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (different_verdict, f"different results for ann/{EXERCISE}: pass and fail"),
        (different_files, f"different results for ann/{EXERCISE}: other files"),
        (different_kernel, "kernel: 6.1.0-dut and 5.10"),
        (different_image, "image: the DUT's packages differ"),
        (different_lab_file, f"labs/{LAB}/lab.yml is not the same"),
        (different_checks, "the checks are not the same"),
        (different_lab, f"{LAB} and lab97-other"),
        (nothing_measured, "never measured anything"),
    ],
)
def test_parts_that_do_not_belong_together(checkout: Path, change: Change, why: str) -> None:
    shutil.copytree(checkout / "one", checkout / "other")
    edit(checkout / "other", change)
    with pytest.raises(BadInput, match=why):
        write_merged([checkout / "one", checkout / "other"], checkout / "all", Course())
    assert not (checkout / "all").exists()


def test_two_halves_of_a_lab_for_several_systems(checkout: Path) -> None:
    """Each decides the exercises of its own system; those of the other are inconclusive in it."""
    shutil.copytree(checkout / "one", checkout / "other")

    def of_the_other(entries: list[dict]) -> None:
        different_kernel(entries)
        of_kind(entries, "machines")[0]["run"]["dut"]["system"] = "freebsd"
        for work in of_kind(entries, "work"):
            work |= {"checks": [], "missing": "measured on a DUT with linux"}

    edit(checkout / "other", of_the_other)
    for folders in (("one", "other"), ("other", "one")):
        works = merged([checkout / name for name in folders]).works.values()
        assert [work.outcome for work in works] == ["pass", "fail"]


@pytest.mark.parametrize("text", ["{", "{\n", '{"entry": "student", "id": "../../out"}\n', ""])
def test_parts_that_are_damaged(checkout: Path, text: str) -> None:
    (checkout / "two" / FILE).write_text(text)
    with pytest.raises(BadInput, match=rf"{FILE}:1: not "):
        write_merged([checkout / "one", checkout / "two"], checkout / "all", Course())
    assert not (checkout / "all").exists()


def test_a_line_that_was_cut_off_is_left_out(checkout: Path) -> None:
    path = checkout / "one" / FILE
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"\n", 0, -1) + 20])
    record = read_record(checkout / "one")
    assert len(record.works) == 2
    assert record.similar == []
    record.add(Similar(pairs=[]))
    assert path.read_bytes() == data[: data.rindex(b"\n", 0, -1) + 1] + b'{"entry":"similar","pairs":[]}\n'


def test_a_full_disk_loses_no_line(checkout: Path) -> None:
    path, similar = checkout / "one" / FILE, b'{"entry":"similar","pairs":[]}\n'
    before, record = path.read_bytes(), read_record(checkout / "one")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(CannotMeasure, match=FILE):
            record.add(Similar(pairs=[]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before + similar[:10]
    record.add(Similar(pairs=[]))
    assert path.read_bytes() == before + similar + similar


# ---- fwlab verify ---------------------------------------------------------------------------------------------


def test_nothing_changed(checkout: Path) -> None:
    found = checked(checkout)
    assert (found.judged, found.changes, found.marks, found.faults) == (2, [], [], [])


def test_a_changed_limit_changes_a_mark(checkout: Path) -> None:
    lab = checkout / "labs" / LAB / "lab.yml"
    lab.write_text(lab.read_text().replace("between: [0, 0]", "between: [0, 1]"))
    found = checked(checkout)
    assert found.changes[0] == f"labs/{LAB}/lab.yml has changed since"
    assert f"{EXERCISE}: delivered-attacker: at least 0 and at most 0, now at least 0 and at most 1" in found.changes
    assert [(mark.student, mark.was, mark.now) for mark in found.marks] == [("bob", "fail", "pass")]


def test_a_changed_measurement_is_noticed(checkout: Path) -> None:
    def arrives(entries: list[dict]) -> None:
        of_kind(entries, "work")[0]["measured"]["deliveries"][0]["arrived"]["attacker"] = 5

    edit(checkout / "one", arrives)
    assert [(mark.student, mark.now) for mark in checked(checkout).marks] == [("ann", "fail")]


def test_a_missing_measurement_is_noticed(checkout: Path) -> None:
    def nothing(entries: list[dict]) -> None:
        for work in of_kind(entries, "work"):
            work["measured"] = None

    edit(checkout / "one", nothing)
    assert [fault.split(":")[0] for fault in checked(checkout).faults] == [f"ann/{EXERCISE}", f"bob/{EXERCISE}"]


@pytest.mark.parametrize("line", ["[]", "nonsense", '{"entry": "work"}', '{"entry": "else"}', "\0"])
def test_a_record_that_cannot_be_read(checkout: Path, line: str) -> None:
    path = checkout / "one" / FILE
    count = path.read_bytes().count(b"\n")
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadInput, match=rf"{FILE}:{count + 1}: not a record of a grading"):
        checked(checkout)


def test_an_empty_folder(tmp_path: Path, checkout: Path) -> None:
    with pytest.raises(BadInput, match=f"{FILE}: No such file"):
        verify(Project(checkout), tmp_path)
