# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts, full disks and hostile files give a message of two lines and never a traceback."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fwlab.checkout import atomic_write
from fwlab.checkout.project import Project, load_topology
from fwlab.cli import main
from fwlab.host.ssh import write_ssh_config
from fwlab.images.boxes import built_boxes
from fwlab.model.errors import EXIT_USAGE, CannotMeasure
from fwlab.rulesets.files import not_loaded, student_ruleset, with_reasons
from tests import ROOT
from tests.fakes import factories, student_checkout
from tests.fakes.student_checkout import LAB, Door

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one small lab, as the working directory; no session can be opened."""
    factories.small_checkout(tmp_path, LAB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "open_session", lambda *_: pytest.fail("a session was opened"))
    return tmp_path


@pytest.fixture
def door(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    """`fwlab WORDS`: exit code, standard output, standard error."""
    return student_checkout.door(monkeypatch, capsys)


def python(script: str, *words: str, path: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in a new process, with these folders before the checkout."""
    environment = {**os.environ, "PYTHONPATH": f"{path}{ROOT}", "PYTHONIOENCODING": "utf-8:strict"}
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, **options}
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=50,
        **options,
    )


# ---- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_during_imports_is_one_line(tmp_path: Path, number: str) -> None:
    """A module that all others import raises the interrupt while it is imported."""
    stub = f"import os, signal, time\nos.kill(os.getpid(), signal.{number})\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(stub)
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    done = python(script + "from fwlab.cli.entry import main; main()", path=f"{tmp_path}:")
    assert (done.returncode, done.stderr) == (130, "fwlab: interrupted; nothing was started\n")


def test_an_ignored_interrupt_stays_ignored() -> None:
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);"
    script += "import atexit; atexit.register(lambda: print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN));"
    done = python(script + "from fwlab.cli.entry import main; main()", "list")
    assert done.stdout.endswith("True\n"), done.stderr


def test_the_entry_point_handles_interrupts_before_it_imports_fwlab() -> None:
    """An interrupt during such an import would give a traceback."""
    script = "import sys, fwlab.cli.entry;"
    script += "print(len([m for m in sys.modules if m.startswith('fwlab')]), 'rich' in sys.modules)"
    assert python(script).stdout == "3 False\n"


# ---- a full disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["list"], ["--help"]], ids=" ".join)
def test_output_to_a_full_device(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = python("from fwlab.cli.main import main; main()", *words, stdout=full)
    assert done.stderr == "fwlab: cannot write: No space left on device\n  next: df -h\n"
    assert done.returncode == EXIT_USAGE


def refuse(*_: object, **__: object) -> None:
    raise FULL


PREDICTING = ["predict", LAB, "ex1-block", "1000"]


@pytest.mark.parametrize(
    ("words", "fails", "left"),
    [
        (PREDICTING, "checkout.atomic_write.tempfile.mkstemp", "labs/LAB/work/predictions.yml"),
        (PREDICTING, "checkout.atomic_write.os.replace", "labs/LAB/work/predictions.yml"),
        (PREDICTING, "checkout.atomic_write.Path.mkdir", "labs/LAB/work/predictions.yml"),
        (["start", LAB], "measure.work_folder.Path.mkdir", "labs/LAB/work/ex1-block"),
        (["start", LAB], "measure.work_folder.Path.write_text", "labs/LAB/work/ex1-block"),
        (["start", LAB], "measure.work_folder.Path.rename", "labs/LAB/work/ex1-block"),
        (["run", LAB, "raw-drop"], "checkout.atomic_write.tempfile.TemporaryFile", "reports/LAB"),
        (["check", LAB], "checkout.atomic_write.tempfile.TemporaryFile", "reports/LAB/check"),
        (["profile", LAB, "raw-drop"], "checkout.atomic_write.tempfile.TemporaryFile", "reports/LAB/profile"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_full_disk_is_one_message_and_nothing_is_left(
    checkout: Path, door: Door, monkeypatch: pytest.MonkeyPatch, words: list[str], fails: str, left: str
) -> None:
    """Before anything is measured."""
    monkeypatch.setattr(f"fwlab.{fails}", refuse)
    code, said, complaint = door(*words)
    assert (code, said) == (EXIT_USAGE, "")
    where = checkout / left.replace("LAB", LAB)
    assert f"fwlab: {where}: cannot be written: No space left on device\n  next: make room" in complaint
    assert not (checkout / "reports").exists()
    work = [*(checkout / "labs" / LAB / "work").iterdir()]
    assert [path.name for path in work] == (["ex1-block"] if words[0] == "check" else [])


def test_a_session_on_a_full_disk(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(checkout)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(CannotMeasure, match="ssh_config: cannot be written: No space left on device"):
        write_ssh_config(project, load_topology(project), 98, LAB)


# ---- files ---------------------------------------------------------------------------------------


def test_deeply_nested_streams(door: Door, tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    assert door("traffic", "expand", str(tmp_path / "deep.json"))[0] == EXIT_USAGE


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
        done = python("from fwlab.cli.entry import main; main()", *words, cwd=checkout)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert ("\\udcff" if code == 0 else "\\xfe") in done.stdout + done.stderr


def test_names_that_are_not_utf8_are_escaped_in_files(tmp_path: Path) -> None:
    path = atomic_write.write_atomically(tmp_path / "marks.csv", "who\udcff,pass\n")
    assert path.read_text() == "who\\udcff,pass\n"
