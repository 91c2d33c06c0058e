# SPDX-License-Identifier: GPL-2.0-or-later
"""The wheel, built once and installed outside any checkout: `fwlab init` makes a folder from it that works.

The new environment has links to the packages of these tests' own, so that nothing is downloaded.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from fwlab import __version__
from fwlab.checkout.version import VERSION
from fwlab.grading.student_bundle import INSTALLED, PACKED, bundle_files
from fwlab.images.boxes import IMAGES, content_key
from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT, lab_named
from tests.unit.cli.test_bundle import GRADED, LAB, SOLUTIONS
from tests.unit.images.test_boxes import SETTINGS
from tests.unit.project.test_requirements import normal
from tools.man_page import FILE

UV = Path(sys.executable).with_name("uv")


def run(*words: object, cwd: Path, **env: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FWLAB_", "PYTHON"))}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**kept, **env}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Installed:
    wheel: Path
    environment: Path
    folder: Path
    said: str

    def fwlab(self, *words: str) -> str:
        return run(self.folder / ".venv/bin/fwlab", *words, cwd=self.folder)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    top = tmp_path_factory.mktemp("wheel")
    (top / "build.cfg").write_text(f"[build]\nbuild_base = {top}/build\n[egg_info]\negg_base = {top}\n")
    options = ("--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", top / "dist")
    run(UV, "build", *options, ROOT, cwd=top, DIST_EXTRA_CONFIG=str(top / "build.cfg"))
    (wheel,) = (top / "dist").glob("*.whl")
    environment = top / "tool"
    run(UV, "venv", "--offline", "--python", sys.executable, environment, cwd=top)
    run(UV, "pip", "install", "--offline", "--no-deps", "--python", environment / "bin/python", wheel, cwd=top)
    (packages,) = environment.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not (path.name.startswith(("fwlab", "__editable__")) or (packages / path.name).exists()):
            (packages / path.name).symlink_to(path)
    folder = top / "labs of mine"
    said = run(environment / "bin/fwlab", "init", folder.name, "--lab", "lab03", cwd=top)
    return Installed(wheel, environment, folder, said)


def written(folder: Path) -> dict[str, tuple[bytes, bool]]:
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(folder / ".venv")]
    named = {path.relative_to(folder).as_posix(): path for path in paths if "__pycache__" not in path.parts}
    return {name: (path.read_bytes(), os.access(path, os.X_OK)) for name, path in named.items()}


def expected(labs: Sequence[str]) -> dict[str, tuple[bytes, bool]]:
    version = {VERSION.as_posix(): (f"{__version__}\n".encode(), False)}
    return bundle_files(PROJECT, [lab_named(lab) for lab in labs], installed=True) | version


def test_the_folder_is_the_bundle_without_the_package(installed: Installed) -> None:
    assert written(installed.folder) == expected([LAB])
    bundle = bundle_files(PROJECT, [lab_named(LAB)])
    left_out = {name for name in bundle if name.startswith("fwlab/") or name in INSTALLED}
    assert set(written(installed.folder)) == set(bundle) - left_out | {VERSION.as_posix()}
    assert f"has {LAB}\nnext: cd 'labs of mine' && " in installed.said


def test_by_default_it_has_every_lab(installed: Installed, tmp_path: Path) -> None:
    run(installed.environment / "bin/fwlab", "init", ".", cwd=tmp_path)
    assert written(tmp_path) == expected(LAB_IDS)


def test_the_wheel_has_no_solution(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    packed = [Path(name) for name in names if name.startswith(f"{PACKED.relative_to(ROOT)}/")]
    assert len(packed) > 300
    assert not [path for path in packed if set(path.parts) & {*SOLUTIONS, "results", "tests", "instructor.md"}]
    own = ("fwlab", f"fwlab-{__version__}.dist-info", f"fwlab-{__version__}.data")
    assert not [name for name in names if name.split("/")[0] not in own]


def test_it_brings_the_manual_page(installed: Installed) -> None:
    assert (installed.environment / "share/man/man1/fwlab.1").read_text() == (ROOT / FILE).read_text()


def test_offline_commands_work_in_the_folder(installed: Installed, tmp_path: Path) -> None:
    assert [lab["id"] for lab in json.loads(installed.fwlab("list", "--json"))] == [LAB]
    assert LAB in installed.fwlab("status")
    assert "fwlab:" not in installed.fwlab("traffic", "show", LAB, "one-attacker")
    report = ("report", LAB, str(GRADED), "--output", str(tmp_path), "--format", "check-json")
    exercises = json.loads(installed.fwlab(*report))["exercises"]
    assert {"pass", "fail"} <= {exercise["verdict"] for exercise in exercises}
    where = "import fwlab, os; print(os.path.realpath(fwlab.__file__))"
    found = run(installed.folder / ".venv/bin/python", "-c", where, cwd=installed.folder)
    assert Path(found.strip()).is_relative_to(installed.environment)


def test_vagrant_and_packer_find_the_installed_package(installed: Installed) -> None:
    """As provision/vagrant calls it. The boxes are those of the checkout."""
    python = installed.folder / ".venv/bin/python"
    plan = json.loads(run(python, "-m", "fwlab.machines", "plan", LAB, cwd=installed.folder))
    assert set(plan["machines"]) == {LAB, f"{LAB}-generator", f"{LAB}-sink"}
    for image in IMAGES:
        assert content_key(installed.folder, image, SETTINGS) == content_key(ROOT, image, SETTINGS)
    run(installed.folder / "provision/host/venv", cwd=installed.folder)
    done = subprocess.run(
        [installed.folder / "packer/build", "--lab", "lab99"], cwd="/", capture_output=True, text=True, timeout=60
    )
    assert done.stderr.startswith(f"packer/build: unknown lab lab99; there are: {LAB}\n")


def test_a_build_needs_no_more_than_is_declared() -> None:
    """setup.py imports what it needs of the package, in an environment with these alone and what they bring."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    code = "import sys, fwlab.grading.student_bundle; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = set(run(sys.executable, "-c", code, cwd=ROOT).split())
    brings = packages_distributions()
    found = {normal(dist) for name in loaded for dist in brings.get(name, ())} - {"fwlab", "fwlab-coresim"}
    brought = {"annotated-types", "markupsafe", "pydantic-core", "typing-extensions", "typing-inspection"}
    assert found - brought <= {normal(line) for line in declared}
    assert {"pydantic", "jinja2", "pyyaml"} <= found
