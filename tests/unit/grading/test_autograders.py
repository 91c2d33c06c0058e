# SPDX-License-Identifier: GPL-2.0-or-later
"""Autograders for Gradescope and Classroom 50: their scripts run as they stand, in folders laid out as theirs.

The gradings are real, on fake machines (fake_class.py). What installs something only notes that it was called.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from fwlab.grading.autograders import write_classroom50, write_gradescope
from fwlab.grading.student_bundle import archive
from fwlab.model.errors import BadInput
from tests import ROOT
from tests.checkout import PROJECT
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading
from tests.fakes.hand_ins import RULES

from .test_student_repository import DOCKER, FWLAB

OF = "lab03-ipset"
BOXES = "https://example.org/boxes.tar"
SHA256 = "0" * 64
IMAGE = "registry.example.org/fwlab:1"
NOTES = '#!/bin/sh\necho "$(basename "$0")" "$@" >>{noted}\n'
#: In place of runuser: the command without another user.
RUNUSER = '#!/bin/sh\necho runuser "$2" >>{noted}\nshift 3\nexec "$@"\n'


def add(folder: Path, **programs: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def packed(folder: Path, **options: object) -> Path:
    path = folder / "autograder.zip"
    write_gradescope(PROJECT, OF, path, **{"boxes": BOXES, "sha256": SHA256, **options})
    return path


class Gradescope:
    """/autograder as Gradescope makes it: source/ from the .zip, run_autograder from there, submission/, results/."""

    def __init__(self, top: Path, **options: object) -> None:
        self.top, self.noted, self.bin = top / "autograder", top / "noted", top / "bin"
        self.source = self.top / "source"
        for folder in ("source", "submission", "results"):
            (self.top / folder).mkdir(parents=True)
        with zipfile.ZipFile(packed(top, **options)) as made:
            for one in made.infolist():
                made.extract(one, self.source)
                (self.source / one.filename).chmod(one.external_attr >> 16)
        shutil.copy(self.source / "run_autograder", self.top)
        user = {"id": 12, "name": "Ada", "email": "ada@example.org"}
        self.metadata = {"id": 4711, "created_at": "2027-01-15T18:00:00Z", "users": [user]}
        programs = ("apt-get", "useradd", "chown", "vagrant")
        add(
            self.bin,
            runuser=RUNUSER.format(noted=self.noted),
            **dict.fromkeys(programs, NOTES.format(noted=self.noted)),
        )

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        (self.top / "submission_metadata.json").write_text(json.dumps(self.metadata))
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "COLUMNS": "200"}
        return subprocess.run([self.top / script], cwd=self.top, env=env, capture_output=True, text=True)


@pytest.fixture
def graded(tmp_path: Path) -> Gradescope:
    """With the small lab, as setup.sh leaves it."""
    course = tmp_path / "course.yml"
    course.write_text("points: 10\nsecret: nobody can guess these words\n")
    made = Gradescope(tmp_path, course=course)
    grading = FakeGrading(tmp_path / "lab")
    folder = shutil.move(grading.top, made.source / f"fwlab-{LAB}")
    known = {"python": sys.executable, "root": ROOT}
    add(folder / ".venv/bin", fwlab=FWLAB.format(**known), python=f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    shutil.copytree(ROOT / "provision/image", folder / "provision/image")
    script = made.top / "run_autograder"
    script.write_text(script.read_text().replace(OF, LAB))
    add(made.bin, getent="#!/bin/sh\necho lab:x:1000:1000::/home/lab:/bin/sh\n")
    (made.top / "submission" / EXERCISE).mkdir()
    (made.top / "submission" / EXERCISE / "rules.iptables").write_text(RULES)
    return made


def test_a_submission_gets_its_results(graded: Gradescope) -> None:
    done = graded.run("run_autograder")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((graded.top / "results/results.json").read_text())
    assert (found["score"], [test["score"] for test in found["tests"]]) == (10, [10])
    assert "ada@example.org" in done.stdout, "by whom the instructor's course.yml knows the student"
    assert "nobody can guess" not in done.stdout + done.stderr + json.dumps(found)
    assert "runuser lab" in graded.noted.read_text()


@pytest.mark.parametrize("users", [[], [{"email": "=cmd()|x"}], [{"email": "../../etc"}], [{}]])
def test_who_has_no_address_is_the_number_of_the_submission(graded: Gradescope, users: list) -> None:
    graded.metadata["users"] = users
    (graded.top / "submission" / EXERCISE / "rules.iptables").write_text(f"# on the DUT: leaks\n{RULES}")
    done = graded.run("run_autograder")
    assert f"\n4711,{EXERCISE},fail," in done.stdout
    assert json.loads((graded.top / "results/results.json").read_text())["score"] == 0


def test_what_cannot_begin_is_no_result(graded: Gradescope) -> None:
    """Gradescope then says so to the instructor, and gives nobody zero points."""
    shutil.rmtree(graded.source / f"fwlab-{LAB}" / "labs")
    assert graded.run("run_autograder").returncode != 0
    assert not (graded.top / "results/results.json").exists()


def boxes(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "boxes.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("fwlab-boxes/SHA256SUMS")
        tar.addfile(info, io.BytesIO())
    return path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("right", [True, False])
def test_setup_installs_imports_and_saves_a_state(tmp_path: Path, right: bool) -> None:
    where, digest = boxes(tmp_path)
    made = Gradescope(tmp_path, boxes=where, sha256=digest if right else SHA256)
    program = (NOTES.format(noted=made.noted).encode(), True)
    names = ("provision/host/install", "provision/host/venv")
    build = f'#!/bin/sh\necho build "$1" >>{made.noted}\nls "$2" >>{made.noted}\n'.encode()
    files = {**dict.fromkeys(names, program), "packer/build": (build, True)}
    (made.source / f"fwlab-{OF}.tar.gz").write_bytes(archive(f"fwlab-{OF}", files))
    done = made.run("source/setup.sh")
    noted = made.noted.read_text().splitlines()
    assert noted[:3] == ["apt-get update", "install packages.txt packages-image.txt", "venv"]
    if right:
        assert done.returncode == 0, done.stderr
        imported = noted.index("build --import")
        assert noted[imported + 1] == "SHA256SUMS"
        assert noted[-2:] == [f"vagrant up {OF}", f"vagrant destroy -f {OF}"]
    else:
        assert done.returncode != 0
        assert not [line for line in noted if "build" in line], "what has another checksum is not unpacked"


def test_the_archive_has_a_bundle_and_the_course_and_no_solution(tmp_path: Path) -> None:
    (tmp_path / "course.yml").write_text("points: 10\n")
    path = packed(tmp_path, course=tmp_path / "course.yml")
    before = path.read_bytes()
    assert packed(tmp_path, course=tmp_path / "course.yml").read_bytes() == before
    with zipfile.ZipFile(path) as made:
        modes = {one.filename: one.external_attr >> 16 for one in made.infolist()}
        with tarfile.open(fileobj=io.BytesIO(made.read(f"fwlab-{OF}.tar.gz"))) as tar:
            names = tar.getnames()
    assert modes == {"setup.sh": 0o755, "run_autograder": 0o755, f"fwlab-{OF}.tar.gz": 0o644, "course.yml": 0o600}
    assert not [name for name in names if {"reference", "mistake", "variants"} & set(name.split("/"))]
    assert f"fwlab-{OF}/provision/image/grade" in names


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"boxes": "x; rm -rf /"}, "is no address of an archive"),
        ({"boxes": 'https://example.org/"$(id)'}, "is no address of an archive"),
        ({"sha256": "abc"}, "is no SHA-256"),
    ],
)
def test_what_cannot_be_written_into_the_script_is_refused(tmp_path: Path, options: dict, fault: str) -> None:
    with pytest.raises(BadInput, match=fault):
        packed(tmp_path, **options)


# ---- Classroom 50 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "score"), [("fine", 100), ("leaks", 0)])
def test_classroom_50_gets_its_result(tmp_path: Path, word: str, score: int) -> None:
    """By its contract: score and max-score are the sums of those of the tests, all of them whole numbers."""
    grading, student = FakeGrading(tmp_path), tmp_path / "student"
    own = tmp_path / "autograders"
    write_classroom50(PROJECT, OF, own, IMAGE)
    (own / "grade").write_text((own / "grade").read_text().replace(OF, LAB))
    (student / "work" / EXERCISE).mkdir(parents=True)
    (student / "work" / EXERCISE / "rules.iptables").write_text(f"# on the DUT: {word}\n{RULES}")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x", "--date=2027-01-15T18:00:00Z"]):
        env = {**os.environ, "GIT_COMMITTER_DATE": "2027-01-15T18:00:00Z"}
        subprocess.run(["git", *who, *words], cwd=student, env=env, check=True)
    known = {"python": sys.executable, "root": ROOT, "checkout": grading.top, "image": IMAGE}
    add(tmp_path / "bin", docker=DOCKER.format(noted=tmp_path / "noted", **known), fwlab=FWLAB.format(**known))
    given = ("CLASSROOM", "ASSIGNMENT", "SUBMISSION_TAG", "COMMIT_URL", "RELEASE_URL")
    env = {**os.environ, **{name: name.lower() for name in given}, "OWNER": "ada", "GITHUB_SHA": "HEAD"}
    env["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run([sys.executable, own / "autograder.py"], cwd=student, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((student / "result.json").read_text())
    assert found["schema"] == "classroom50/result/v1"
    assert {found[name] for name in ("classroom", "assignment", "submission", "commit", "release", "review")} == {
        "classroom", "assignment", "submission_tag", "commit_url", "release_url",
    }  # fmt: skip
    assert found["datetime"] == "2027-01-15T18:00:00Z"
    assert (found["score"], found["max-score"]) == (score, 100)
    for test in found["tests"]:
        assert {"test-name", "passed", "score", "max-score"} <= set(test)
        assert type(test["score"]) is type(test["max-score"]) is int
    assert found["score"] == sum(test["score"] for test in found["tests"])


def test_without_an_image_classroom_50_gets_an_error_and_no_result(tmp_path: Path) -> None:
    write_classroom50(PROJECT, OF, tmp_path, IMAGE)
    (tmp_path / "work").mkdir()
    env = {**os.environ, "OWNER": "ada", "GITHUB_SHA": "x", "DOCKER": "false"}
    assert subprocess.run([sys.executable, tmp_path / "autograder.py"], cwd=tmp_path, env=env).returncode == 1
    assert not (tmp_path / "result.json").exists()
