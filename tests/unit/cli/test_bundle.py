# SPDX-License-Identifier: GPL-2.0-or-later
"""A student's bundle: complete, without solutions, the same every time, and it works from where it was unpacked."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fwlab.cli.main import app
from fwlab.grading.student_bundle import bundle_files, wanted, without_lost_links, write_bundle
from fwlab.measure.saved_runs import load_run
from fwlab.model.errors import BadInput
from fwlab.report.model import build_model
from fwlab.report.renderers.json_output import check_document
from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT, lab_named
from tests.fakes.guide_pages import commands

LAB = "lab03-ipset"
LABS = LAB_IDS
#: Graded: start, reference, mistake and variants of each exercise.
GRADED = ROOT / "results" / LAB / "2026-11-23-labs-exercises.json.gz"
SOLUTIONS = ("reference", "mistake", "variants")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of one lab, unpacked."""
    folder = tmp_path_factory.mktemp("bundle")
    with tarfile.open(write_bundle(PROJECT, [LAB], folder)) as tar:
        tar.extractall(folder, filter="data")
    return folder / f"fwlab-{LAB}"


def fwlab(bundle: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the bundle's own fwlab in its folder."""
    start = "import sys, fwlab; from fwlab.cli.entry import main; assert fwlab.__file__.startswith(sys.path[1]); main()"
    env = {name: value for name, value in os.environ.items() if not name.startswith("FWLAB_")}
    env |= {"PYTHONPATH": str(bundle), "COLUMNS": "100"}
    command = [sys.executable, "-c", start, *words]
    return subprocess.run(command, cwd=bundle, env=env, text=True, capture_output=True)


@cache
def files_of(lab_id: str) -> dict[str, tuple[bytes, bool]]:
    return bundle_files(PROJECT, [lab_named(lab_id)])


@pytest.mark.parametrize("lab_id", LABS)
def test_a_labs_bundle_has_what_it_loads_and_no_solution(lab_id: str) -> None:
    lab, files = lab_named(lab_id), files_of(lab_id)
    folder = f"labs/{lab_id}"
    assert {"README.md", "Makefile", "Vagrantfile", f"{folder}/README.md", f"{folder}/lab.yml"} <= set(files)
    for case in lab.whole.cases.values():
        assert [name for name in files if name.startswith(f"{folder}/rulesets/{case.ruleset}/")]
    for exercise in lab.whole.exercises:
        own = [name for name in files if name.startswith(f"{folder}/rulesets/{exercise.id}/")]
        assert own
        assert all(name.startswith(f"{folder}/rulesets/{exercise.id}/start/") for name in own)
    assert {name.split("/")[1] for name in files if name.startswith("labs/")} == {f.name for f in lab.code_folders}
    assert not [name for name in files if set(Path(name).parts) & {*SOLUTIONS, "results", "tests"}]


@pytest.mark.parametrize("lab_id", LABS)
def test_no_file_of_a_solution_is_in_it_under_another_name(lab_id: str) -> None:
    """Unless it is part of the task: a case's ruleset, or a file of the start that the solution leaves as it is."""
    files = files_of(lab_id)
    others = {content for name, (content, _) in files.items() if f"labs/{lab_id}/rulesets/" not in name}
    solutions = list((ROOT / "labs" / lab_id).glob("rulesets/*/reference/*"))
    assert solutions
    assert not [path for path in solutions if path.read_bytes() in others]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"labs/{LAB}/rulesets/ipset/rules.iptables", True),
        (f"labs/{LAB}/rulesets/ex3-ipset/start/rules.iptables.j2", True),
        (f"labs/{LAB}/rulesets/ex3-ipset/reference/rules.iptables", False),
        (f"labs/{LAB}/rulesets/ex3-ipset/variants.yml", False),
        (f"labs/{LAB}/rulesets/notes.md", False),
        (f"labs/{LAB}/hints.yml", True),
        (f"labs/{LAB}/instructor.md", False),
        (f"labs/{LAB}/solutions/all.py", False),
        (f"labs/{LAB}/work/ex1-one-host/rules.iptables", False),
        ("labs/lab04-nftables/README.md", False),
        ("guides/student.md", True),
        ("guides/instructor.md", False),
        ("tools/site/gather.py", False),
        ("fwlab/cli/main.py", True),
        ("results/lab03-ipset/2026-11-20-full.json.gz", False),
        ("tests/unit/labs/test_labs.py", False),
        ("secret.yml", False),
    ],
)
def test_only_what_is_listed_goes_in(name: str, expected: bool) -> None:
    assert wanted(name, lab_named(LAB)) is expected


def test_the_bytes_are_the_same_every_time(tmp_path: Path) -> None:
    first, second = (write_bundle(PROJECT, [LAB], tmp_path / name) for name in ("one", "two"))
    os.utime(ROOT / "labs" / LAB / "lab.yml")
    assert first.read_bytes() == second.read_bytes() == write_bundle(PROJECT, [LAB], tmp_path / "three").read_bytes()
    with tarfile.open(first) as tar:
        entries = tar.getmembers()
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname) for entry in entries} == {(0, 0, 0, "")}
    assert {entry.mode for entry in entries} == {0o644, 0o755}
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)


def test_every_exercise_can_be_started_and_predicted(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is this one (the next test), so that it need not be imported for each exercise."""
    copy = shutil.copytree(bundle, tmp_path / "copy")
    monkeypatch.chdir(copy)
    assert CliRunner().invoke(app, ["start", LAB]).exit_code == 0
    for exercise in lab_named(LAB).exercises:
        assert list((copy / "labs" / LAB / "work" / exercise.id).iterdir())
        asked = CliRunner().invoke(app, ["predict", LAB, exercise.id]).output
        assert asked.split() == exercise.predict.question.split()
    assert CliRunner().invoke(app, ["traffic", "show", LAB, "one-attacker"]).exit_code == 0


def test_the_package_is_that_of_the_checkout(bundle: Path) -> None:
    modules = list((bundle / "fwlab").rglob("*.py"))
    assert len(modules) > 100
    assert not [path for path in modules if path.read_bytes() != (ROOT / path.relative_to(bundle)).read_bytes()]


def test_a_check_is_judged_without_the_reference(bundle: Path, tmp_path: Path) -> None:
    """As in the checkout, whatever the file says: it holds starts, references and mistakes."""
    done = fwlab(bundle, "report", LAB, str(GRADED), "--output", str(tmp_path), "--format", "check-json")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found == json.loads(json.dumps(check_document(build_model(lab_named(LAB), load_run(GRADED, LAB)))))
    outcomes = [exercise["verdict"] for exercise in found["exercises"]]
    assert outcomes.count("pass") > 4
    assert outcomes.count("fail") > 8
    assert (tmp_path / "report.html").is_file()


def test_its_pages_have_no_broken_link(bundle: Path) -> None:
    count = 0
    for page in bundle.rglob("*.md"):
        if page.is_relative_to(bundle / "fwlab"):
            continue
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if not re.match(r"[a-z]+:", target):
                assert (page.parent / target).exists(), f"{page}: {target}"
                count += 1
    assert count > 20


def test_its_readme_has_commands_of_the_checkout(bundle: Path) -> None:
    found = [command.words for command in commands(bundle / "README.md", bundle)]
    assert ("make", "boxes", f"LAB={LAB}") in found
    assert ("fwlab", "check", LAB, "ex1-one-host") in found
    targets = re.findall(r"^([a-z]+):", (bundle / "Makefile").read_text(), re.MULTILINE)
    assert {"setup", "boxes"} <= set(targets)
    done = subprocess.run(["make", "-n", "boxes"], cwd=bundle, text=True, capture_output=True)
    assert f"packer/build --lab {LAB}" in done.stdout


def test_one_bundle_of_all_labs(tmp_path: Path) -> None:
    path = write_bundle(PROJECT, LABS, tmp_path, every=True)
    assert path.name == "fwlab-labs.tar.gz"
    with tarfile.open(path) as tar:
        names = tar.getnames()
        readme = tar.extractfile("fwlab-labs/README.md").read().decode()
    for lab_id in LABS:
        assert f"fwlab-labs/labs/{lab_id}/lab.yml" in names
        assert f"[{lab_id}](labs/{lab_id}/README.md)" in readme


def test_lost_links_leave_their_words() -> None:
    page = "See [the\nmethod](method.md#noise), [gone](../labs/lab09/README.md) and\n![a picture](none.svg)\n[web](https://example.org)."
    text = without_lost_links(page, "guides/student.md", ["guides/student.md", "guides/method.md"])
    assert text == "See [the\nmethod](method.md#noise), gone and\n[web](https://example.org)."


def test_the_beginning_of_a_labs_name_suffices_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="unknown lab lab99-none"):
        write_bundle(PROJECT, ["lab99-none"], tmp_path)
    assert not list(tmp_path.iterdir())
    done = CliRunner().invoke(app, ["author", "bundle", LAB[:5], "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == [f"fwlab-{LAB}.tar.gz"]


def test_without_git_it_says_so(bundle: Path, tmp_path: Path) -> None:
    done = fwlab(bundle, "author", "bundle", LAB, "--output", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "not a git checkout" in done.stderr
    assert not (tmp_path / "out").exists()
    done = fwlab(bundle, "author", "classroom50", LAB, str(tmp_path / "out"))
    assert (done.returncode, "not a checkout of the project" in done.stderr) == (2, True)
    assert not (tmp_path / "out").exists()
