# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad arguments and files give one message and a hint, before KVM is tried; nothing is started or written."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.checkout.raw_results import write_document
from fwlab.cli import hold, main, perf_profile
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_FAIL, EXIT_UNMEASURED, EXIT_USAGE, BadInput, CannotMeasure, FwlabError, Refused
from fwlab.rulesets import files
from fwlab.student.predictions import read_predictions
from tests.fakes import factories, student_checkout
from tests.fakes.student_checkout import LAB, Door

NO_LAB = f"unknown lab lab99-none; there are: {LAB}\n  next: fwlab list"
CASES = "it has: raw-drop, rules-16, rules-64"
NO_CASE = f"{LAB} has no case no-such; {CASES}\n  next: fwlab list {LAB}"
NEITHER = f"{LAB} has no case or exercise no-such; {CASES}; its exercises: ex1-block\n  next: fwlab list {LAB}"
SEVERAL = f"rules matches several cases: rules-16, rules-64\n  next: fwlab hold {LAB} rules-16"
NO_EXERCISE = f"{LAB} has no exercise ex9-none; it has: ex1-block\n  next: fwlab list {LAB}"
NO_TESTBED = "unknown testbed cloud\n  next: use auto, virtual or real"
NOT_FINITE = "a prediction must be a finite number of at least 0 (got {0})\n  next: give a number, such as 250000"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one small lab, as the working directory; no session can be opened, and KVM not be tried."""
    factories.small_checkout(tmp_path, LAB)
    monkeypatch.chdir(tmp_path)
    for module in (main, hold, perf_profile):
        monkeypatch.setattr(module, "open_session", lambda *_: pytest.fail("a session was opened"))
    monkeypatch.setattr("fwlab.host.kvm_probe.DEVICE", Path("/dev/null"))
    tried = SimpleNamespace(Popen=lambda *_, **__: pytest.fail("KVM was tried"))
    monkeypatch.setattr("fwlab.host.kvm_probe.subprocess", tried)
    return tmp_path


@pytest.fixture
def door(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    """`fwlab WORDS`: exit code, standard output, standard error."""
    return student_checkout.door(monkeypatch, capsys)


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("list lab99-none", NO_LAB),
        ("list ../labs", NO_LAB.replace("lab99-none", "../labs")),
        ("run lab99-none", NO_LAB),
        ("check lab99-none", NO_LAB),
        ("start lab99-none", NO_LAB),
        ("report lab99-none", NO_LAB),
        ("predict lab99-none ex1-block 1", NO_LAB),
        ("grade lab99-none", NO_LAB),
        ("hold lab99-none raw-drop", NO_LAB),
        ("run LAB --machines lab99-none", NO_LAB),
        ("run LAB no-such", NO_CASE),
        ("run LAB raw-drop no-such", NO_CASE),
        ("hold LAB no-such", NEITHER),
        ("profile LAB no-such", NEITHER),
        ("hold LAB rules", SEVERAL),
        ("check LAB ex9-none", NO_EXERCISE),
        ("start LAB ex9-none", NO_EXERCISE),
        ("predict LAB ex9-none 250000", NO_EXERCISE),
        ("run LAB --testbed cloud", NO_TESTBED),
        ("check LAB --testbed cloud", NO_TESTBED),
        ("hold LAB raw-drop --testbed cloud", NO_TESTBED),
        ("run LAB raw-drop --engine fast", "unknown engine fast\n  next: use auto, trex or replay"),
        ("predict LAB ex1-block nan", NOT_FINITE.format("nan")),
        ("predict LAB ex1-block inf", NOT_FINITE.format("inf")),
    ],
)
def test_a_wrong_argument_is_named(door: Door, checkout: Path, words: str, message: str) -> None:
    before = tree(checkout)
    assert door(*words.replace("LAB", LAB).split()) == (EXIT_USAGE, "", f"fwlab: {message}\n")
    assert tree(checkout) == before


@pytest.mark.parametrize("command", ["check", "hold"])
def test_files_that_no_tool_loads_are_named(door: Door, checkout: Path, command: str) -> None:
    work = checkout / "labs" / LAB / "work" / "ex1-block"
    work.mkdir()
    (work / "rules.nfta").touch()
    code, _, complaint = door(command, LAB, "ex1-block")
    assert code == EXIT_USAGE
    assert "ex1-block has nothing to load: rules.nfta (no tool loads *.nfta; nft loads *.nft)\n  next: " in complaint


@pytest.mark.parametrize(
    "words",
    [
        "measure LAB",
        "run",
        "run LAB --trials 0",
        "run LAB --trials many",
        "predict LAB ex1-block fast",
        "list --no-such-option",
    ],
)
def test_wrong_usage_is_reported(door: Door, words: str) -> None:
    code, said, complaint = door(*words.replace("LAB", LAB).split())
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
    ("error", "code", "says"),
    [
        (BadInput("a", "b"), EXIT_USAGE, "fwlab: a\n  next: b\n"),
        (Refused("a", "b"), EXIT_FAIL, "fwlab: a\n  next: b\n"),
        (CannotMeasure("a", "b"), EXIT_UNMEASURED, "fwlab: a\n  next: b\n"),
        (KeyboardInterrupt(), 130, "fwlab: interrupted; everything that this command started has been stopped\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_error_has_its_exit_code(
    door: Door, monkeypatch: pytest.MonkeyPatch, error: FwlabError | KeyboardInterrupt, code: int, says: str
) -> None:
    def troubled(*_: object) -> None:
        raise error

    monkeypatch.setattr(main, "open_session", troubled)
    ended, said, complaint = door("run", LAB, "raw-drop", "--testbed", "virtual")
    assert (ended, said) == (code, "")
    assert complaint.endswith(says)


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
    door: Door, checkout: Path, words: list[str], old: str, new: str, message: str
) -> None:
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "not a run of fwlab: started: Field required\n  next: fwlab run LAB"),
        (None, "No such file or directory\n  next: fwlab run LAB"),
        (
            factories.a_run([]).model_dump_json(),
            "a run of lab99-made-up, not of LAB\n  next: fwlab report lab99-made-up PATH",
        ),
    ],
    ids=["no run", "missing", "of another lab"],
)
def test_a_wrong_run_is_named(door: Door, checkout: Path, text: str | None, message: str) -> None:
    path = checkout / "old.json"
    if text is not None:
        path.write_text(text)
    before = tree(checkout)
    said = message.replace("LAB", LAB).replace("PATH", str(path))
    assert door("report", LAB, str(path)) == (EXIT_USAGE, "", f"fwlab: {path}: {said}\n")
    if text is None:
        latest = checkout / "reports" / LAB / "run.json"
        assert door("report", LAB) == (EXIT_USAGE, "", f"fwlab: {latest}: {said}\n")
    assert tree(checkout) == before


def test_an_old_run_is_shown_and_results_are_not_changed(door: Door, checkout: Path) -> None:
    """lab.yml may no longer declare its cases."""
    run = factories.a_run([factories.measured(factories.a_lab(), "set-1", 270_000, 270_000)], lab=LAB)
    folder = checkout / "results" / LAB
    path = write_document(folder / "2000-01-01-other.json.gz", run.model_dump_json())
    code, said, complaint = door("report", LAB, str(path))
    assert (code, complaint) == (0, "")
    assert "set-1" in said
    assert [*folder.iterdir()] == [path]
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
