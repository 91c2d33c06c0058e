# SPDX-License-Identifier: GPL-2.0-or-later
"""Only one session at a time uses a lab's machines. A second one names the first, waits, and then continues."""

import fcntl
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from fwlab.checkout.project import Project
from fwlab.model.errors import CannotMeasure
from fwlab.model.events import MachinesBusy
from fwlab.report.progress import listener
from fwlab.testbed import session_lock
from fwlab.testbed.session_lock import lock_path, machines_held
from tests import ROOT
from tests.fakes.factories import small_checkout

LAB, STAND, SMALL = "lab03-ipset", "lab01-forwarding", "lab98-trouble"

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
HOLDER = """
import sys
from pathlib import Path
from fwlab.checkout.project import Project
from fwlab.testbed.session_lock import machines_held
sys.argv = ["/usr/bin/fwlab", "check", "lab03-ipset", "ex one"]
with machines_held(Project(Path(sys.stdin.readline().strip())), "lab01-forwarding", "lab03-ipset", print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that measures on the machines."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", HOLDER], env=env, text=True, **PIPES) as process:
        process.stdin.write(f"{tmp_path}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def holder(project: Project, end: Callable[[], object]) -> str:
    """What a second session that waits says of the first, which then ends."""
    said, asked, entered = [], threading.Event(), threading.Event()

    def waits(holder: str) -> None:
        said.append(holder)
        asked.set()

    def enter() -> None:
        with machines_held(project, STAND, "lab04-nftables", waits):
            entered.set()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    assert asked.wait(30)
    assert not entered.is_set()
    end()
    assert entered.wait(30)
    thread.join(30)
    [found] = said
    return found


@pytest.mark.parametrize("killed", [False, True])
def test_the_second_session_names_the_first_and_waits(
    tmp_path: Path, other: subprocess.Popen[str], killed: bool
) -> None:
    with machines_held(Project(tmp_path), LAB, LAB, lambda _: pytest.fail("these are other machines")):
        pass
    found = holder(Project(tmp_path), other.kill if killed else lambda: other.communicate("end\n"))
    assert found.startswith(f"`fwlab check {LAB} 'ex one'` (pid {other.pid}, since ")
    assert found.endswith(f"), which measures {LAB}")


def test_a_single_session_does_not_wait_and_leaves_no_name(tmp_path: Path) -> None:
    for _ in range(2):
        with machines_held(Project(tmp_path), STAND, LAB, lambda _: pytest.fail("waited")):
            assert str(os.getpid()) in lock_path(Project(tmp_path), STAND).read_text()
        assert lock_path(Project(tmp_path), STAND).read_text() == ""


@pytest.mark.parametrize("text", ["", "{", "[]", '{"lab": 1}', "[" * 5000])
def test_a_holder_without_a_name_is_reported(tmp_path: Path, text: str) -> None:
    path = lock_path(Project(tmp_path), STAND)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert holder(Project(tmp_path), held.close) == "another command"


def test_a_full_disk_does_not_keep_the_lock_from_being_held_unless_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    lock_path(project, STAND).parent.mkdir(parents=True)
    lock_path(project, STAND).symlink_to("/dev/full")
    with machines_held(project, STAND, LAB, print):
        pass

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    said = pytest.raises(CannotMeasure, match="session.lock: cannot be written: No space left on device")
    with said, machines_held(project, STAND, LAB, print):
        pass


def test_a_long_command_with_control_characters_is_one_short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "/usr/lib/python3/site-packages/pytest/__main__.py"
    monkeypatch.setattr("sys.argv", [program, "-k", "a\x1b[2J\udcff" + "b" * 900])
    line = session_lock._command()
    assert line.startswith("pytest -k ")
    assert len(line) == session_lock.MAX_COMMAND
    assert line.isprintable()


def test_a_grading_reports_that_it_waits_despite_captured_output(tmp_path: Path) -> None:
    small_checkout(tmp_path, SMALL)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FWLAB_PORT_OFFSET": "9000"}
    with subprocess.Popen([sys.executable, "-c", HOLDER.replace(STAND, SMALL)], env=env, text=True, **PIPES) as holder:
        holder.stdin.write(f"{tmp_path}\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--testinfra", "--lab", SMALL]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with subprocess.Popen(
            [*argv, "--part", "start", "-k", "test_dut_forwards"], cwd=tmp_path, env=env, text=True, **pipes
        ) as grading:
            line = grading.stderr.readline().strip()
            assert not line or line.startswith("waiting for")
            line = line or grading.stderr.readline()
            assert line.startswith(f"waiting for the machines of {SMALL}: in use by `fwlab check")
            grading.kill()
        holder.kill()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_wait_is_shown(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=200, color_system=None)
    with listener(console) as emit:
        emit(MachinesBusy(STAND, "`fwlab run lab03-ipset` (pid 7, since 15:04:05), which measures lab03-ipset"))
    said = f"waiting for the machines of {STAND}: in use by `fwlab run lab03-ipset` (pid 7, since 15:04:05)"
    assert said in out.getvalue()
