# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts, full disks and hostile files give a message of two lines and never a traceback."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.checkout import atomic_write
from fwlab.checkout.project import Project
from fwlab.cli import main
from fwlab.host.ssh import write_ssh_config
from fwlab.images.boxes import built_boxes
from fwlab.model.errors import EXIT_USAGE, CannotMeasure
from fwlab.rulesets.files import not_loaded, student_ruleset, with_reasons
from tests import ROOT
from tests.fakes import factories

LAB = "lab98-trouble"
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one small lab, as the working directory; no session can be opened."""
    factories.small_checkout(tmp_path, LAB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "open_session", lambda *_: pytest.fail("a session was opened"))
    return tmp_path


def fwlab(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["fwlab", *words])
    with pytest.raises(SystemExit) as left:
        main.main()
    return left.value.code or 0


# ---- fast failures ------------------------------------------------------------------------


MISTYPED = [
    (["run", LAB, "no-such"], "has no case no-such"),
    (["run", LAB, "raw-drop", "--engine", "fast"], "unknown engine fast"),
    (["run", LAB, "--testbed", "fast"], "unknown testbed fast"),
    (["run", LAB, "--machines", "lab97-none"], "unknown lab lab97-none"),
    (["check", LAB, "ex9-none"], "has no exercise ex9-none"),
    (["check", LAB, "ex1-block"], "ex1-block has nothing to load: rules.nfta (no tool loads *.nfta; nft loads *.nft)"),
    (["profile", LAB, "no-such"], "has no case or exercise no-such"),
    (["grade", "lab97-none"], "unknown lab lab97-none"),
]


@pytest.mark.parametrize(("words", "message"), MISTYPED, ids=[" ".join(words) for words, _ in MISTYPED])
def test_mistyped_arguments_are_reported_before_the_kvm_probe(
    checkout: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "labs" / LAB / "work" / "ex1-block").mkdir()
    (checkout / "labs" / LAB / "work" / "ex1-block" / "rules.nfta").touch()
    monkeypatch.setattr("fwlab.host.kvm_probe.DEVICE", Path("/dev/null"))
    tried = SimpleNamespace(Popen=lambda *_, **__: pytest.fail("KVM was tried"))
    monkeypatch.setattr("fwlab.host.kvm_probe.subprocess", tried)
    monkeypatch.setattr("fwlab.testbed.selection.kvm_works", lambda: pytest.fail("KVM was asked for"))
    assert fwlab(*words, monkeypatch=monkeypatch) == EXIT_USAGE
    assert message in capsys.readouterr().err


# ---- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_during_imports_is_one_line(tmp_path: Path, number: str) -> None:
    """A module that all others import raises the interrupt while it is imported."""
    stub = f"import os, signal, time\nos.kill(os.getpid(), signal.{number})\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(stub)
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    script += "from fwlab.cli.entry import main; main()"
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (130, "fwlab: interrupted; nothing was started\n")


def test_an_ignored_interrupt_stays_ignored() -> None:
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import sys; sys.argv = ['fwlab', 'list'];"
    script += "import atexit; atexit.register(lambda: print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN));"
    script += "from fwlab.cli.entry import main; main()"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=50)
    assert done.stdout.endswith("True\n"), done.stderr


def test_the_entry_point_handles_interrupts_before_it_imports_fwlab() -> None:
    """An interrupt during such an import would give a traceback."""
    script = "import sys, fwlab.cli.entry;"
    script += "print(len([m for m in sys.modules if m.startswith('fwlab')]), 'rich' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.stdout == "3 False\n"


# ---- a full disk ---------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"]], ids=" ".join)
def test_output_to_a_full_device(words: list[str]) -> None:
    script = f"import sys; sys.argv = ['fwlab', *{words}]; from fwlab.cli.main import main; main()"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("w") as full:
        argv = [sys.executable, "-c", script]
        done = subprocess.run(argv, cwd=ROOT, env=env, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.stderr == "fwlab: cannot write: No space left on device\n  next: df -h\n"
    assert done.returncode == EXIT_USAGE


def refuse(*_: object, **__: object) -> None:
    raise FULL


@pytest.mark.parametrize("name", ["tempfile.mkstemp", "os.replace", "Path.mkdir"])
def test_predictions_on_a_full_disk(
    checkout: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"fwlab.checkout.atomic_write.{name}", refuse)
    assert fwlab("predict", LAB, "ex1-block", "1000", monkeypatch=monkeypatch) == EXIT_USAGE
    where = checkout / "labs" / LAB / "work" / "predictions.yml"
    said = capsys.readouterr().err
    assert said.startswith(f"fwlab: {where}: cannot be written: No space left on device\n  next: make room")
    assert list(where.parent.iterdir()) == []


@pytest.mark.parametrize("name", ["mkdir", "write_text", "rename"])
def test_a_failed_start_on_a_full_disk_leaves_nothing_behind(
    checkout: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"fwlab.measure.work_folder.Path.{name}", refuse)
    assert fwlab("start", LAB, monkeypatch=monkeypatch) == EXIT_USAGE
    work = checkout / "labs" / LAB / "work"
    assert f"fwlab: {work}/ex1-block: cannot be written: No space left on device\n  next: " in capsys.readouterr().err
    assert list(work.iterdir()) == []


MEASURING = [["run", LAB, "raw-drop"], ["check", LAB], ["profile", LAB, "raw-drop"]]


@pytest.mark.parametrize("words", MEASURING, ids=" ".join)
def test_unwritable_reports_are_reported_before_measuring(
    checkout: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(atomic_write.tempfile, "TemporaryFile", refuse)
    assert fwlab(*words, monkeypatch=monkeypatch) == EXIT_USAGE
    assert f"fwlab: {checkout}/reports/{LAB}" in (said := capsys.readouterr().err)
    assert ": cannot be written: No space left on device\n  next: " in said
    assert not (checkout / "reports").exists()


def test_a_session_on_a_full_disk(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fwlab.checkout.project import load_topology

    project = Project(checkout)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(CannotMeasure, match="ssh_config: cannot be written: No space left on device"):
        write_ssh_config(project, load_topology(project), 98, LAB)


# ---- files ---------------------------------------------------------------------------------------


def test_deeply_nested_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    assert fwlab("traffic", "expand", str(tmp_path / "deep.json"), monkeypatch=monkeypatch) == EXIT_USAGE


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '"boxes"', "\x00"])
def test_an_invalid_list_of_boxes(checkout: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / ".fwlab").mkdir()
    (checkout / ".fwlab" / "images.json").write_text(text)
    with pytest.raises(CannotMeasure, match="the boxes are not built"):
        built_boxes(Project(checkout))


NAMES = [b"\xff.nft", b"\xff.bad", b"a\x1b[2J.nft", b"two\nlines.nft", b"\xe2\x80\xae.nft"]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_ruleset_name_with_control_characters_is_escaped(tmp_path: Path, name: bytes) -> None:
    """Only the suffix selects the kind; messages show the name escaped."""
    (tmp_path / os.fsdecode(name)).write_text("table ip x {\n}\n")
    if name.endswith(b".bad"):
        assert student_ruleset(tmp_path) == []
        shown = with_reasons(not_loaded(tmp_path))
    else:
        [file] = student_ruleset(tmp_path)
        shown = file.name
    assert shown.isascii()
    assert shown.isprintable()


def test_a_path_that_is_not_utf8_is_shown_escaped(tmp_path: Path) -> None:
    """Also on standard output, whose encoding is strict, and in error messages."""
    shutil.copytree(ROOT / "labs/lab03-ipset", top := tmp_path / os.fsdecode(b"\xff/labs/lab03-ipset"))
    shutil.rmtree(top / "work")
    checkout = top.parents[1]
    shutil.copy(ROOT / "topology.yml", checkout)
    for words, code in (["start", "lab03-ipset", "ex1-one-host"], 0), (["list", os.fsdecode(b"\xfe")], EXIT_USAGE):
        script = "from fwlab.cli.entry import main; main()"
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8:strict"}
        argv = [sys.executable, "-c", script, *words]
        done = subprocess.run(argv, cwd=checkout, env=env, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert ("\\udcff" if code == 0 else "\\xfe") in done.stdout + done.stderr


def test_names_that_are_not_utf8_are_escaped_in_files(tmp_path: Path) -> None:
    path = atomic_write.write_atomically(tmp_path / "marks.csv", "who\udcff,pass\n")
    assert path.read_text() == "who\\udcff,pass\n"
