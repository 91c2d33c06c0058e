# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a class are joined, and stored results are judged again. The gradings ran on fake machines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fwlab.grading.course import Course
from fwlab.grading.merge import merge, write_merged
from fwlab.grading.record import read_record
from fwlab.grading.verify import Verified, verify
from fwlab.host.project import Project
from fwlab.model.errors import BadInput
from tests.offline.fake_grading import EXERCISE, LAB, FakeGrading

COMMIT = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
Change = Callable[[Path], None]


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


def edit(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def checked(top: Path, folder: str = "one") -> Verified:
    return verify(Project(top), top / folder)


def test_two_parts_are_joined(checkout: Path) -> None:
    found = write_merged([checkout / "one", checkout / "two"], checkout / "all", Course())
    assert [student.id for student in found.students] == ["ann", "bob", "cid"]
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
    record = json.loads((checkout / "again" / "grading.json").read_text())
    record["works"][0]["checks"][0]["outcome"] = "pass"
    (checkout / "again" / "grading.json").write_text(json.dumps(record))
    for folders in (("two", "again"), ("again", "two")):
        (work,) = merge([checkout / name for name in folders]).works
        assert work.outcome == "pass"


def different_verdict(record: dict) -> None:
    record["works"][0]["checks"][0]["outcome"] = "fail"


def different_files(record: dict) -> None:
    record["works"][0]["content"] = "other"


def different_kernel(record: dict) -> None:
    record["conditions"]["kernel"] = "5.10"


def different_image(record: dict) -> None:
    record["conditions"]["image"] = {"nftables": "0.9"}


def different_lab_file(record: dict) -> None:
    record["files"][f"labs/{LAB}/lab.yml"] = "0" * 64


def different_checks(record: dict) -> None:
    record["exercises"][EXERCISE]["checks"]["delivered-attacker"]["between"] = [0, 5]


def different_lab(record: dict) -> None:
    record["lab"] = "lab97-other"


def nothing_measured(record: dict) -> None:
    record["conditions"] = None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (different_verdict, f"different results for ann/{EXERCISE}: pass and fail"),
        (different_files, f"different results for ann/{EXERCISE}: other files"),
        (different_kernel, "kernel: 6.1.0-dut and 5.10"),
        (different_image, "image: the DUT's packages differ"),
        (different_lab_file, f"labs/{LAB}/lab.yml was not the same"),
        (different_checks, "the checks were not the same"),
        (different_lab, f"{LAB} and lab97-other"),
        (nothing_measured, "never measured anything"),
    ],
)
def test_parts_that_do_not_belong_together(checkout: Path, change: Callable[[dict], None], why: str) -> None:
    shutil.copytree(checkout / "one", checkout / "other")
    record = json.loads((checkout / "other" / "grading.json").read_text())
    change(record)
    (checkout / "other" / "grading.json").write_text(json.dumps(record))
    with pytest.raises(BadInput, match=why):
        write_merged([checkout / "one", checkout / "other"], checkout / "all", Course())
    assert not (checkout / "all").exists()


def test_two_halves_of_a_lab_for_several_systems(checkout: Path) -> None:
    """Each decides the exercises of its own system; those of the other are inconclusive in it."""
    shutil.copytree(checkout / "one", checkout / "other")
    record = json.loads((checkout / "other" / "grading.json").read_text())
    different_kernel(record)
    record["conditions"]["system"] = "freebsd"
    for work in record["works"]:
        work |= {"checks": [], "missing": "measured on a DUT with linux"}
    (checkout / "other" / "grading.json").write_text(json.dumps(record))
    for folders in (("one", "other"), ("other", "one")):
        assert [work.outcome for work in merge([checkout / name for name in folders]).works] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("grading.json", "{"),
        ("grading.json", '{"students": [{"id": "../../out"}]}'),
        ("submissions.json", "["),
        ("submissions.json", "[]"),
        ("run.json", None),
    ],
)
def test_parts_that_are_damaged(checkout: Path, name: str, text: str | None) -> None:
    path = checkout / "two" / name
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(BadInput, match=name):
        write_merged([checkout / "one", checkout / "two"], checkout / "all", Course())
    assert not (checkout / "all" / "grading.json").exists()


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
    run = json.loads((checkout / "one" / "run.json").read_text())
    run["exercises"][0]["deliveries"][0]["arrived"]["attacker"] = 5
    (checkout / "one" / "run.json").write_text(json.dumps(run))
    assert [(mark.student, mark.now) for mark in checked(checkout).marks] == [("ann", "fail")]


def test_a_missing_measurement_is_noticed(checkout: Path) -> None:
    edit(checkout / "one" / "run.json", exercises=[])
    assert [fault.split(":")[0] for fault in checked(checkout).faults] == [f"ann/{EXERCISE}", f"bob/{EXERCISE}"]


def test_changed_submissions_are_noticed(checkout: Path) -> None:
    path = checkout / "one" / "submissions.json"
    path.write_text(path.read_text().replace("rules.iptables", "rules.nft", 1))
    assert checked(checkout).faults == [f"ann/{EXERCISE}: submissions.json does not have the files that were graded"]


def test_an_older_grading_without_a_record(checkout: Path) -> None:
    (checkout / "one" / "grading.json").unlink()
    found = checked(checkout)
    assert (found.judged, found.marks, found.faults) == (2, [], [])
    assert "nobody can say which files or limits have changed since" in found.changes[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.json", ""),
        ("run.json", "[]"),
        ("submissions.json", "nonsense"),
        ("grading.json", "{}"),
        ("run.json", None),
    ],
)
def test_results_that_cannot_be_read(checkout: Path, name: str, text: str | None) -> None:
    path = checkout / "one" / name
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(BadInput, match=name):
        checked(checkout)


def test_an_empty_folder(tmp_path: Path, checkout: Path) -> None:
    with pytest.raises(BadInput, match="run.json"):
        verify(Project(checkout), tmp_path)
    with pytest.raises(BadInput, match="grading.json"):
        read_record(tmp_path).grading()
