# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab init`: a whole folder or none, nothing of others is touched, and it says what comes next."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fwlab import __version__
from fwlab.checkout.project import Project, find_project, lab_ids
from fwlab.checkout.version import VERSION
from fwlab.cli import doctor
from fwlab.cli.main import app
from fwlab.grading import student_folder
from fwlab.grading.student_folder import make_folder
from fwlab.host.hardware_probe import Finding
from fwlab.machines.plan import Plan
from fwlab.model.errors import BadInput

LAB = "lab03-ipset"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "new" / "folder"
    assert make_folder(folder, ["lab03"])
    return folder


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What this host lacks, as `fwlab doctor` finds it."""
    found: list[Finding] = []
    monkeypatch.setattr(doctor, "programs", lambda *, boxes_built: found)
    return found


def said(*words: str) -> list[str]:
    done = CliRunner().invoke(app, ["init", *words])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_a_second_time_it_says_what_is_there(made: Path, lacking: list[Finding]) -> None:
    before = contents(made)
    assert said(str(made), "--lab", LAB)[0] == said(str(made))[0] == f"{made} has {LAB} already"
    assert contents(made) == before


def test_a_link_to_an_environment_that_is_gone_is_renewed(tmp_path: Path) -> None:
    make_folder(tmp_path, [LAB])
    link = tmp_path / ".venv"
    link.unlink()
    link.symlink_to(tmp_path / "gone")
    done = subprocess.run([tmp_path / "provision/host/venv"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"  next: install fwlab, then: fwlab init {tmp_path}")
    assert not make_folder(tmp_path, [])
    assert link.resolve() == Path(sys.prefix).resolve()
    assert subprocess.run([tmp_path / "provision/host/venv"]).returncode == 0


def test_the_next_step_is_named(tmp_path: Path, lacking: list[Finding], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b"
    lacking.append(Finding("qemu-img", False, "not installed", "make setup"))
    assert said(str(folder), "--lab", LAB)[1].startswith(f"next: cd '{folder}' && provision/host/install ")
    lacking.clear()
    assert said(str(folder))[1].startswith(f"next: cd '{folder}' && packer/build --lab {LAB} ")
    (folder / ".fwlab/images.json").write_text(json.dumps({}))
    monkeypatch.chdir(folder)
    assert said(".")[1] == f"next: vagrant up {LAB}"


def test_a_volume_or_the_working_directory_may_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inode = tmp_path.stat().st_ino
    monkeypatch.chdir(tmp_path)
    assert make_folder(Path(), [LAB])
    assert tmp_path.stat().st_ino == inode
    assert find_project() == Project(tmp_path)
    assert lab_ids(find_project()) == [LAB]


@pytest.mark.parametrize("name", ["notes.txt", ".git/HEAD", "labs/lab03-ipset/lab.yml"])
def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(BadInput, match="contains other files") as error:
        make_folder(tmp_path, [LAB])
    assert error.value.hint == "name a new folder"
    assert contents(tmp_path) == {name: b"mine"}
    with pytest.raises(BadInput, match="is not a folder"):
        make_folder(tmp_path / name, [LAB])


def test_an_unknown_lab_and_one_for_another_folder_are_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="unknown lab lab99"):
        make_folder(tmp_path / "new", ["lab99"])
    assert not (tmp_path / "new").exists()
    with pytest.raises(BadInput, match=f"has {LAB}, but not lab04-nftables") as error:
        make_folder(made, ["lab03", "lab04"])
    assert error.value.hint == "fwlab init NEW-FOLDER --lab lab04-nftables"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("step", ["write_bytes", "rename"])
def test_nothing_half_made_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, there: bool, step: str
) -> None:
    folder, calls = tmp_path / "folder", []
    usual = getattr(Path, step)

    def fail_later(path: Path, argument: object) -> object:
        calls.append(path)
        if len(calls) == 4:
            raise error
        return usual(path, argument)

    if there:
        folder.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(Path, step, fail_later)
        expected = BadInput if isinstance(error, OSError) else KeyboardInterrupt
        with pytest.raises(expected):
            make_folder(folder, [LAB])
    assert len(calls) == 4
    assert folder.exists() is there
    assert not there or not list(folder.iterdir())
    assert make_folder(folder, [LAB])


def test_a_python_without_fwlab_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(student_folder.sys, "prefix", str(tmp_path))
    with pytest.raises(BadInput, match="has no bin/python"):
        make_folder(tmp_path / "new", [LAB])


def test_programs_may_be_run_by_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        make_folder(tmp_path / "new", [LAB])
    finally:
        os.umask(before)
    assert (tmp_path / "new/provision/host/install").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new/topology.yml").stat().st_mode & 0o777 == 0o600


def test_a_folder_of_another_version_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_folder(tmp_path, [LAB])
    monkeypatch.chdir(tmp_path)
    Plan(tmp_path)
    (tmp_path / VERSION).write_text("9.0.0\n")
    for step in (find_project, lambda: Plan(tmp_path), lambda: make_folder(tmp_path, [])):
        with pytest.raises(BadInput, match=f"was made by fwlab 9.0.0, and this is fwlab {__version__}\n") as error:
            step()
        assert "install fwlab 9.0.0 again" in error.value.hint
