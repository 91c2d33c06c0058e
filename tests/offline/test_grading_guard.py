# SPDX-License-Identifier: GPL-2.0-or-later
"""A class's folder is data: no file in it, above it or below it makes pytest run code on this host.

The tests use a Python set up like that of provision/host/venv, where provision/host/fwlab.pth runs before pytest.
"""

from __future__ import annotations

import contextlib
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.fake_grading import EXERCISE, LAB, ROOT, FakeGrading

PTH = ROOT / "provision" / "host" / "fwlab.pth"
EVIL = "from pathlib import Path\nPath({trace!r}).touch()\n"
INI = "[pytest]\naddopts = -p evilplug\npythonpath = {here}\n"
TOML = '[tool.pytest.ini_options]\naddopts = "-p evilplug"\npythonpath = ["{here}"]\n'
NATIVE = '[pytest]\naddopts = ["-p", "evilplug"]\npythonpath = ["{here}"]\n'
FILES = {
    ".pytest.ini": INI,
    "pytest.ini": INI,
    "tox.ini": INI,
    "setup.cfg": INI.replace("[pytest]", "[tool:pytest]"),
    "pyproject.toml": TOML,
    "pytest.toml": NATIVE,
    ".pytest.toml": NATIVE,
    "conftest.py": EVIL,
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with this one's packages and fwlab.pth, but without other start-up files."""
    made = tmp_path_factory.mktemp("python")
    venv.create(made, with_pip=False, symlinks=True)
    folder = next(made.glob("lib/python3.*/site-packages"))
    packages = [path for path in site.getsitepackages() if Path(path).is_dir()]
    (folder / "a.pth").write_text("\n".join(packages))
    shutil.copy(PTH, folder)
    return made / "bin" / "python"


class Planted:
    """A class of one student whose folder has a plugin. If the plugin runs, it leaves a trace file."""

    def __init__(self, python: Path, top: Path) -> None:
        self.python, self.trace = python, top / "ran"
        self.grading = FakeGrading(top)
        self.grading.hand_in("ann", "rules.iptables")
        self.grading.hand_in("ann", "evilplug.py", EVIL.format(trace=str(self.trace)))

    def plant(self, name: str, folder: Path) -> Path:
        evil = self.grading.folder / "ann" / EXERCISE
        path = folder / name
        path.write_text(FILES[name].format(here=evil, trace=str(self.trace)))
        return path

    def run(self, *words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *words],
            cwd=cwd or self.grading.top,
            env={**self.grading.environment, **environment},
            capture_output=True,
            text=True,
            timeout=100,
        )

    @contextlib.contextmanager
    def without_guard(self) -> Iterator[None]:
        (there,) = self.python.parents[1].glob("lib/python3.*/site-packages/fwlab.pth")
        held = there.rename(there.with_suffix(".held"))
        try:
            yield
        finally:
            held.rename(there)

    def words(self, *submissions: str) -> list[str]:
        graded = ["--testinfra", "--lab", LAB, *(submissions or self.apart), "--collect-only", "-q"]
        return ["-p", "tests.offline.fake_class", *graded]

    @property
    def apart(self) -> tuple[str, str]:
        """The form of the option in which pytest takes the folder for a test path."""
        return "--submissions", str(self.grading.folder)


@pytest.fixture
def planted(python: Path, tmp_path: Path) -> Planted:
    return Planted(python, tmp_path)


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "the trap works"])
@pytest.mark.parametrize("name", [name for name in FILES if name != "conftest.py"])
def test_no_configuration_in_the_class_folder_is_run(planted: Planted, name: str, guarded: bool) -> None:
    """With -VV, because pytest loads configured plugins even then."""
    planted.plant(name, planted.grading.folder)
    with contextlib.nullcontext() if guarded else planted.without_guard():
        planted.run("-m", "pytest", "-VV", *planted.apart)
    assert planted.trace.exists() is not guarded


def test_a_configuration_in_the_class_folder_is_refused(planted: Planted) -> None:
    path = planted.plant(".pytest.ini", planted.grading.folder)
    done = planted.run("-m", "pytest", *planted.words())
    assert not planted.trace.exists()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert f"ERROR: {path}: pytest could take this file for its configuration" in done.stderr


def test_files_in_other_folders_are_not_run(planted: Planted) -> None:
    student = planted.grading.folder / "ann"
    for folder in (planted.grading.folder.parent, student, student / EXERCISE):
        for name in (".pytest.ini", "conftest.py"):
            planted.plant(name, folder)
    done = planted.run("-m", "pytest", *planted.words())
    assert not planted.trace.exists()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ann/ex1-block" in done.stdout


def test_started_as_pytest(planted: Planted) -> None:
    """`.venv/bin/pytest` starts differently from `python -m pytest`."""
    planted.plant("pytest.ini", planted.grading.folder)
    program = planted.trace.with_name("pytest")
    program.write_text("import sys\nfrom pytest import console_main\nsys.exit(console_main())\n")
    done = planted.run(str(program), *planted.words())
    assert not planted.trace.exists()
    assert "pytest.ini: pytest could take this file" in done.stderr


def test_started_as_fwlab_grade(planted: Planted) -> None:
    planted.plant(".pytest.ini", planted.grading.folder)
    command = "from fwlab.cli.main import main; main()"
    done = planted.run("-c", command, "grade", LAB, "--submissions", str(planted.grading.folder))
    assert not planted.trace.exists()
    assert done.returncode == 2
    assert ".pytest.ini: pytest could take this file" in done.stderr


def test_started_as_fwlab_grade_in_the_parent_folder(planted: Planted) -> None:
    """There the working directory's configuration would apply."""
    planted.plant("pytest.ini", planted.grading.top)
    command = "from fwlab.cli.main import main; main()"
    done = planted.run("-c", command, "grade", LAB, "--submissions", "no-class")
    assert not planted.trace.exists()
    assert "no folder no-class" in done.stderr


@pytest.mark.parametrize("inside", [".", "ann"])
def test_nothing_is_graded_from_inside_the_folder(planted: Planted, inside: str) -> None:
    """There Python itself would import modules from the working directory."""
    (planted.grading.folder / "pluggy.py").write_text(EVIL.format(trace=str(planted.trace)))
    folder = planted.grading.folder / inside
    done = planted.run("-m", "pytest", *planted.words(f"--submissions={planted.grading.folder}"), cwd=folder)
    assert not planted.trace.exists()
    assert done.returncode == 4
    said = f"ERROR: the working directory is inside {planted.grading.folder}\n"
    assert done.stderr == said + "  next: cd into the checkout and grade\n"


def test_rootdir_does_not_replace_the_configuration(planted: Planted) -> None:
    planted.plant(".pytest.ini", planted.grading.folder)
    planted.run("-m", "pytest", "-VV", "--rootdir", str(planted.grading.top), *planted.apart)
    assert not planted.trace.exists()


def test_an_explicit_configuration_is_used(planted: Planted) -> None:
    planted.plant(".pytest.ini", planted.grading.folder)
    (planted.grading.top / "mine.ini").write_text("[pytest]\naddopts = -k ann\n")
    done = planted.run("-m", "pytest", "-c", "mine.ini", *planted.words())
    assert not planted.trace.exists()
    assert ".pytest.ini: pytest could take this file" in done.stderr
    (planted.grading.folder / ".pytest.ini").unlink()
    assert "deselected" in planted.run("-m", "pytest", "-c", "mine.ini", *planted.words()).stdout


def test_the_instructors_environment_is_used(planted: Planted) -> None:
    mine = planted.trace.with_name("mine")
    (planted.grading.top / "mine.py").write_text(EVIL.format(trace=str(mine)))
    path = f"{planted.grading.environment['PYTHONPATH']}:{planted.grading.top}"
    mines = {"PYTEST_PLUGINS": "mine", "PYTEST_ADDOPTS": "-k ann", "PYTHONPATH": path}
    done = planted.run("-m", "pytest", *planted.words(), **mines)
    assert mine.exists()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deselected" in done.stdout


def test_other_runs_of_pytest_are_not_changed(planted: Planted) -> None:
    planted.plant("conftest.py", planted.grading.top)
    (planted.grading.top / "test_it.py").write_text("def test_it(): pass\n")
    done = planted.run("-m", "pytest", "-q", "test_it.py")
    assert done.returncode == 0
    assert planted.trace.exists()


def test_without_the_guard_a_configuration_from_the_class_is_refused(planted: Planted) -> None:
    """For example in a program that runs pytest: too late for a plugin, in time for a conftest.py."""
    (planted.grading.folder / "pytest.ini").write_text("[pytest]\n")
    planted.plant("conftest.py", planted.grading.folder)
    program = f"import sys, pytest; sys.exit(pytest.main({planted.words()!r}))"
    done = planted.run("-c", program)
    assert not planted.trace.exists()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "pytest took its configuration from the class's folder" in done.stderr


def test_the_venv_has_the_guard(tmp_path: Path) -> None:
    """Also an existing one: `provision/host/venv` then only adds the guard."""
    (tmp_path / "provision" / "host").mkdir(parents=True)
    for name in ("provision/host/venv", "provision/host/fwlab.pth", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    packages = tmp_path / ".venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (tmp_path / ".venv" / "bin").mkdir()
    (tmp_path / ".venv" / "bin" / "fwlab").touch(0o755)
    stamp = subprocess.run(
        "cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1 >.venv/made-from", shell=True, cwd=tmp_path
    )
    assert stamp.returncode == 0
    done = subprocess.run([tmp_path / "provision/host/venv"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (packages / "fwlab.pth").read_text() == PTH.read_text()
