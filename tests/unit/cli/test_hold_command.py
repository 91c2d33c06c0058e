# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab hold`: its arguments, its exit codes, and the login on the DUT, by a stand-in for ssh."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fwlab.cli import hold, main
from fwlab.host.ssh import Ssh
from fwlab.model.errors import EXIT_FAIL, EXIT_UNMEASURED, CannotMeasure, Refused
from tests import ROOT
from tests.fakes import factories

LAB = "lab98-trouble"
Door = Callable[..., tuple[int, str, str]]
#: An ssh that has reached the DUT: the last argument is run here, and without a command a shell.
SSH = """#!/bin/sh
while [ "$1" != dut ]; do [ "$1" = -O ] && exit; shift; done
shift
[ "$*" = true ] && exit ${ANSWERS:-0}
exec sh -c "${*:-exec sh}"
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one small lab, as the working directory, and an ssh of our own."""
    factories.small_checkout(tmp_path, LAB)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH)
    (tmp_path / "bin" / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    for name in ("ssh", "sudo"):
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Held:
    """A session that holds what it is given; `done` tells what, and how it ended."""

    def __init__(self, error: Exception | None = None) -> None:
        self.ssh_config, self.error = Path("none"), error
        self.done: list[str] = []

    @contextlib.contextmanager
    def open(self, *_: object) -> Iterator[Held]:
        yield self

    @contextlib.contextmanager
    def hold(self, spec) -> Iterator[str]:
        if self.error is not None:
            raise self.error
        self.done.append(f"{spec.id}: {spec.ruleset}")
        yield "300 packets per second of flood"
        self.done.append("reset")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Held:
    held = Held()
    monkeypatch.setattr(hold, "open_session", held.open)
    return held


@pytest.fixture
def door(checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Door:
    """`fwlab hold WORDS`: exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["fwlab", "hold", *words])
        with pytest.raises(SystemExit) as left:
            main.main()
        said = capfd.readouterr()
        return left.value.code or 0, said.out, said.err

    return call


@pytest.mark.parametrize("name", ["raw-drop", "rules-16", "ex1-block"])
def test_a_command_runs_on_the_dut_and_its_output_and_status_are_ours(
    door: Door, checkout: Path, session: Held, name: str
) -> None:
    code, said, complaint = door(LAB, name, "--testbed", "virtual", "--", "echo", "two words;", "echo", "-n", "more")
    assert (code, said) == (0, "two words\nmore")
    assert complaint == f"loading {name} ...\nresetting the DUT ...\n"
    own = checkout / "labs" / LAB / "work" / "ex1-block" / "rules.iptables"
    assert own.exists() == (name == "ex1-block"), "the student's own begins as the start"
    ruleset = {"raw-drop": "raw-drop", "rules-16": "rules", "ex1-block": f"labs/{LAB}/work/ex1-block"}[name]
    assert session.done == [f"{name}: {ruleset}", "reset"]
    assert door(LAB, name, "--", "exit 7")[0] == 7
    assert session.done[2:] == session.done[:2]


def test_a_shell_reads_standard_input_and_its_status_says_nothing(
    door: Door, session: Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last command that somebody typed may have failed."""
    (tmp_path / "typed").write_text("echo typed\nfalse\n")
    with (tmp_path / "typed").open() as typed:
        saved = os.dup(0)
        os.dup2(typed.fileno(), 0)
        try:
            code, said, complaint = door(LAB, "raw-drop")
        finally:
            os.dup2(saved, 0)
            os.close(saved)
    assert (code, said) == (0, "typed\n")
    assert "raw-drop is loaded; played: 300 packets per second of flood." in complaint


@pytest.mark.parametrize(
    ("error", "code"), [(Refused("nft said: no", "correct it"), EXIT_FAIL), (CannotMeasure("a", "b"), EXIT_UNMEASURED)]
)
def test_an_error_has_its_exit_code_and_next_command(door: Door, session: Held, error, code: int) -> None:
    session.error = error
    ended, said, complaint = door(LAB, "raw-drop", "--", "echo never")
    assert (ended, said) == (code, "")
    assert complaint.endswith(f"fwlab: {error.message}\n  next: {error.hint}\n")


# ---- the login ------------------------------------------------------------------------------------


def test_a_lost_connection_is_not_the_commands_status(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Ssh(Path("none"), "dut").login("exit 255") == 255, "the DUT still answers"
    monkeypatch.setenv("ANSWERS", "255")
    with pytest.raises(CannotMeasure, match="lost the connection to the dut"):
        Ssh(Path("none"), "dut").login("exit 255")


def test_a_killed_login_is_a_lost_connection(checkout: Path) -> None:
    with pytest.raises(CannotMeasure, match="lost the connection to the dut"):
        Ssh(Path("none"), "dut").login("kill -KILL $(ps -o ppid= -p $PPID)")


SCRIPT = """
import sys, contextlib
from fwlab.cli import hold, main
from tests.unit.cli.test_hold_command import Held
class Loud(Held):
    @contextlib.contextmanager
    def hold(self, spec):
        try:
            yield "nothing"
        finally:
            open("ended", "w").write("reset")
hold.open_session = Loud().open
sys.argv = ["fwlab", "hold", "lab98-trouble", "raw-drop", "--", "echo $$ >begun; exec sleep 60"]
main.main()
"""


def started(checkout: Path, **pipes: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=checkout, env=environment, start_new_session=True, **pipes
    )
    deadline = time.monotonic() + 100
    while not ((checkout / "begun").exists() and (checkout / "begun").read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def commands_end(checkout: Path) -> bool:
    """Whether what runs on the DUT ends, too."""
    command, deadline = Path("/proc", (checkout / "begun").read_text().strip()), time.monotonic() + 20
    while command.exists() and "sleep" in (command / "comm").read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not command.exists()


@pytest.mark.parametrize(
    "number",
    [signal.SIGHUP, *(pytest.param(n, marks=pytest.mark.thorough) for n in (signal.SIGINT, signal.SIGTERM))],
    ids=lambda n: n.name,
)
def test_a_signal_ends_the_login_and_then_the_hold(checkout: Path, number: signal.Signals) -> None:
    process = started(checkout, stdin=-3, stdout=-3, stderr=-1)
    process.send_signal(number)
    complaint = process.communicate(timeout=100)[1].decode()
    assert process.returncode == 130
    assert (checkout / "ended").read_text() == "reset"
    assert commands_end(checkout)
    assert "interrupted; everything that this command started has been stopped" in complaint
    assert "Traceback" not in complaint


def test_a_closed_terminal_ends_the_hold_although_nothing_can_be_printed(checkout: Path) -> None:
    ours, theirs = pty.openpty()
    process = started(checkout, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=_take_terminal)
    os.close(theirs)
    os.close(ours)
    assert process.wait(timeout=100) == 130
    assert (checkout / "ended").read_text() == "reset"


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
