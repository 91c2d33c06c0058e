# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad arguments and files give one message and a hint; nothing is started or written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.cli import main, perf_profile
from fwlab.cli.tries import read_predictions
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_FAIL, EXIT_UNMEASURED, EXIT_USAGE, BadInput, CannotMeasure, FwlabError, Refused
from fwlab.rulesets import files
from tests import ROOT
from tests.fakes import factories

LAB = "lab98-trouble"
NO_PREDICTION = "fwlab: a prediction must be a finite number of at least 0 (got"
NO_LAB = f"fwlab: unknown lab lab99-none; there are: {LAB}\n  next: fwlab list\n"
NO_CASE = f"fwlab: {LAB} has no case no-such; it has: raw-drop, rules-16, rules-64\n  next: fwlab list {LAB}\n"
NO_EXERCISE = f"fwlab: {LAB} has no exercise ex9-none; it has: ex1-block\n  next: fwlab list {LAB}\n"
NO_TESTBED = "fwlab: unknown testbed cloud\n  next: use auto, virtual or real\n"
Door = Callable[..., tuple[int, str, str]]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one small lab, as the working directory; no session can be opened."""
    folder = tmp_path / "labs" / LAB
    (folder / "work").mkdir(parents=True)
    for name in ("raw-drop", "rules", "ex1-block/start"):
        (folder / "rulesets" / name).mkdir(parents=True)
        (folder / "rulesets" / name / "rules.iptables").write_text("*raw\n-A PREROUTING -j DROP\nCOMMIT\n")
    shutil.copy(ROOT / "topology.yml", tmp_path)
    shutil.copy(ROOT / "tests/data/errors/good.yml", folder / "lab.yml")
    (folder / "profile.py").write_text(factories.PROFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "open_session", lambda *_: pytest.fail("a session was opened"))
    return tmp_path


@pytest.fixture
def door(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    """`fwlab WORDS`: exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["fwlab", *words])
        with pytest.raises(SystemExit) as left:
            main.main()
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

    return call


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "lab99-none"], NO_LAB),
        (["list", "../labs"], NO_LAB.replace("lab99-none", "../labs")),
        (["run", "lab99-none"], NO_LAB),
        (["check", "lab99-none"], NO_LAB),
        (["start", "lab99-none"], NO_LAB),
        (["report", "lab99-none"], NO_LAB),
        (["predict", "lab99-none", "ex1-block", "1"], NO_LAB),
        (["grade", "lab99-none"], NO_LAB),
        (["run", LAB, "no-such", "--testbed", "virtual"], NO_CASE),
        (["run", LAB, "raw-drop", "no-such", "--testbed", "virtual"], NO_CASE),
        (["check", LAB, "ex9-none", "--testbed", "virtual"], NO_EXERCISE),
        (["start", LAB, "ex9-none"], NO_EXERCISE),
        (["predict", LAB, "ex9-none", "250000"], NO_EXERCISE),
        (["run", LAB, "--testbed", "cloud"], NO_TESTBED),
        (["check", LAB, "--testbed", "cloud"], NO_TESTBED),
        (["predict", LAB, "ex1-block", "nan"], f"{NO_PREDICTION} nan)\n  next: give a number, such as 250000\n"),
        (["predict", LAB, "ex1-block", "inf"], f"{NO_PREDICTION} inf)\n  next: give a number, such as 250000\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_unknown_argument_is_named(door: Door, checkout: Path, words: list[str], message: str) -> None:
    before = tree(checkout)
    assert door(*words) == (EXIT_USAGE, "", message)
    assert tree(checkout) == before


@pytest.mark.parametrize(
    "words",
    [
        ["measure", LAB],
        ["run"],
        ["run", LAB, "--trials", "0"],
        ["run", LAB, "--trials", "many"],
        ["predict", LAB, "ex1-block", "fast"],
        ["list", "--no-such-option"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_reported(door: Door, words: list[str]) -> None:
    code, said, complaint = door(*words)
    assert (code, said) == (EXIT_USAGE, "")
    assert "Usage:" in complaint
    assert "Traceback" not in complaint


def test_outside_a_checkout_the_hint_is_to_change_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.checkout.project.__file__", str(tmp_path / "installed" / "project.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=f"no labs at or above {tmp_path}") as refused:
        main.find_project()
    assert refused.value.hint == "cd into a folder that has them; `fwlab init DIR` makes one"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("a", "b"), EXIT_USAGE),
        (Refused("a", "b"), EXIT_FAIL),
        (CannotMeasure("a", "b"), EXIT_UNMEASURED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_error_has_its_exit_code(
    door: Door, monkeypatch: pytest.MonkeyPatch, error: FwlabError, code: int
) -> None:
    def troubled(*_: object) -> None:
        raise error

    monkeypatch.setattr(main, "open_session", troubled)
    ended, said, complaint = door("run", LAB, "raw-drop", "--testbed", "virtual")
    assert (ended, said) == (code, "")
    assert complaint.endswith("fwlab: a\n  next: b\n")


def test_interrupt_reports_that_nothing_is_left_running(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "open_session", interrupted)
    code, said, complaint = door("run", LAB, "raw-drop", "--testbed", "virtual")
    assert (code, said) == (130, "")
    assert "fwlab: interrupted; everything that this command started has been stopped" in complaint


# ---- invalid traffic ----------------------------------------------------------------------------

PLACE = f"labs/{LAB}/profile.py"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return [", "raise ValueError('no') or [", f"{PLACE}, line 7: ValueError: no"),
        ("def register", "def unregister", f"{PLACE}: no function register()"),
        ("198.19.0.9", "10.0.0.1", f"{PLACE}: stream 1, frame 1: destination 10.0.0.1 is not a lab address"),
        ("198.19.0.9", "224.0.0.1", f"{PLACE}: stream 1, frame 1: destination 224.0.0.1 is a multicast address"),
        ("pps=1000", "pps=0", f"{PLACE}: stream 1: mode.rate: invalid rate 0 pps; give at least 1e-06"),
        (
            "Cont(pps=1000)",
            "SingleBurst(pps=1, total_pkts=65537)",
            f"{PLACE}: the profile sends more frames than the table holds ",
        ),
        ("bytes(18))", "bytes(18), vm=STLScVmRaw([STLVmJump()]))", f"{PLACE}, line 7: NameError: name 'STLVmJump'"),
    ],
    ids=["raises", "no register", "stranger", "group", "rate of zero", "too many frames", "unknown instruction"],
)
@pytest.mark.parametrize("words", [["run", LAB, "raw-drop"], ["check", LAB], ["profile", LAB, "raw-drop"]], ids=str)
def test_invalid_profile_is_reported_before_anything_starts(
    door: Door, checkout: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], old: str, new: str, message: str
) -> None:
    monkeypatch.setattr(perf_profile, "open_session", lambda *_: pytest.fail("a session was opened"))
    path = checkout / "labs" / LAB / "profile.py"
    path.write_text(path.read_text().replace(old, new))
    code, said, complaint = door(*words, "--testbed", "virtual")
    assert (code, said) == (EXIT_USAGE, "")
    assert complaint.startswith(f"fwlab: {message}")
    assert "\n  next: " in complaint
    assert not (checkout / "reports").exists()
    assert not (checkout / ".fwlab").exists()


def test_prediction_creates_the_work_folder(door: Door, checkout: Path) -> None:
    lab = load_lab(Project(checkout), LAB)
    (lab.folder / "work").rmdir()
    assert door("predict", LAB, "ex1-block", "250000")[0] == 0
    assert read_predictions(lab) == {"ex1-block": 250000.0}


# ---- saved runs ---------------------------------------------------------------------------------------


def test_file_that_is_not_a_run(door: Door, checkout: Path) -> None:
    path = checkout / "old.json"
    path.write_text("{}")
    before = tree(checkout)
    message = f"fwlab: {path}: not a run of fwlab: started: Field required\n  next: fwlab run {LAB}\n"
    assert door("report", LAB, str(path)) == (EXIT_USAGE, "", message)
    assert tree(checkout) == before


def test_missing_run(door: Door, checkout: Path) -> None:
    path = checkout / "reports" / LAB / "run.json"
    message = f"fwlab: {path}: No such file or directory\n  next: fwlab run {LAB}\n"
    assert door("report", LAB) == (EXIT_USAGE, "", message)
    assert not (checkout / "reports").exists()


def test_run_of_another_lab(door: Door, checkout: Path) -> None:
    path = checkout / "old.json"
    path.write_text(factories.a_run([]).model_dump_json())
    message = f"fwlab: {path}: a run of lab99-made-up, not of {LAB}\n  next: fwlab report lab99-made-up {path}\n"
    assert door("report", LAB, str(path)) == (EXIT_USAGE, "", message)


def test_run_with_a_case_that_the_lab_no_longer_declares(door: Door, checkout: Path) -> None:
    """lab.yml may change; an old run still shows its figures."""
    other = factories.a_lab()
    run = factories.a_run([factories.measured(other, "set-1", 270_000, 270_000)])
    run.lab = LAB
    path = checkout / "old.json"
    path.write_text(run.model_dump_json())
    code, said, complaint = door("report", LAB, str(path))
    assert (code, complaint) == (0, "")
    assert "set-1" in said


def test_a_report_of_a_published_run_does_not_change_results(door: Door, checkout: Path) -> None:
    run = factories.a_run([factories.measured(factories.a_lab(), "set-1", 270_000, 270_000)])
    run.lab = LAB
    folder = checkout / "results" / LAB
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "2000-01-01-other.json"
    path.write_text(run.model_dump_json())
    before = sorted(folder.iterdir())
    assert door("report", LAB, str(path))[0] == 0
    assert sorted(folder.iterdir()) == before
    assert (checkout / "reports" / LAB / "2000-01-01-other" / "report.html").is_file()


# ---- port offset ----------------------------------------------------------------------------------------------


def test_port_offset_that_is_not_a_number(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_PORT_OFFSET", "ten")
    topology = load_topology(Project(checkout))
    with pytest.raises(BadInput, match="FWLAB_PORT_OFFSET=ten is not a whole number"):
        topology.ssh_port(3, "dut")


def test_size_limit_admits_the_largest_list() -> None:
    """265 000 lines of `add blacklist 198.18.255.255` must fit."""
    assert files.MAX_FILE_BYTES > 265_000 * 32
