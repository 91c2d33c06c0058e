# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell that stays open on a node, and the commands that it starts; a shell of this host stands for the login."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.host.root_shell import LOST, Program, RootShell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[RootShell]:
    """A shell whose login is counted in `logins`, and whose sudo is none."""
    login = tmp_path / "login"
    login.write_text('#!/bin/sh\necho in >>"${0%/*}/logins"\nsudo() { exec "$@"; }\neval "$1"\n')
    login.chmod(0o755)
    made = RootShell([str(login)])
    yield made
    made.close()


def begun(shell: RootShell, left: Path) -> Program:
    """A command that waits for the end of its input and leaves a file then, once it runs."""
    runs = left.with_name("runs")
    running = shell.start(f"touch {runs}; cat >/dev/null; touch {left}")
    appears(runs)
    return running


def appears(path: Path) -> None:
    subprocess.run(["sh", "-c", f"while ! [ -e {path} ]; do sleep 0.05; done"], timeout=20, check=True)


def logins(folder: Path) -> int:
    return (folder / "logins").read_text().count("in")


def test_commands_share_one_login_and_keep_their_answers_apart(shell: RootShell, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    first = shell.run("cat; echo oops >&2; exit 3", data, 20)
    assert (first.returncode, first.stdout, first.stderr) == (3, data, b"oops\n")
    second = shell.start("read word; echo got $word")
    assert second.returncode is None
    assert second.communicate(b"stop\n", timeout=20) == (b"got stop\n", b"")
    third = shell.start("printf 'a\\nb'")
    assert third.wait(20) == 0
    assert third.communicate(b"stop\n", timeout=20) == (b"a\nb", b"")
    assert shell.run("cat", b"", 20).stdout == b""
    assert logins(tmp_path) == 1


@pytest.mark.parametrize("data", [b"", bytes(1 << 24)], ids=["silent", "takes no input"])
def test_a_command_that_takes_too_long_ends_the_shell_and_the_next_one_opens_another(
    shell: RootShell, tmp_path: Path, data: bytes
) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        shell.run("sleep 5", data, 0.3)
    assert shell.run("echo again", b"", 20).stdout == b"again\n"
    assert logins(tmp_path) == 2


def test_a_wait_ends_in_time_and_the_command_goes_on(shell: RootShell) -> None:
    running = shell.start("read word; echo $word")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.1)
    assert running.communicate(b"late\n", timeout=20) == (b"late\n", b"")


def test_a_connection_that_ends_is_told_by_its_status(shell: RootShell) -> None:
    lost = shell.run("echo gone >&2; kill -KILL $PPID", b"", 20)
    assert (lost.returncode, lost.stdout) == (LOST, b"")
    assert shell.run("echo again", b"", 20).stdout == b"again\n"


def test_a_login_that_fails_is_a_lost_connection_with_its_reason() -> None:
    shell = RootShell(["sh", "-c", "echo no route >&2; exit 255"])
    lost = shell.run("true", b"", 20)
    assert (lost.returncode, lost.stderr) == (LOST, b"no route\n")
    started = shell.start("true")
    assert started.communicate(timeout=20) == (b"", b"no route\n")
    assert started.returncode == LOST


def test_an_interrupted_command_leaves_no_answer_to_the_next_one(
    shell: RootShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    shell.run("true", b"", 20)
    with monkeypatch.context() as patched:
        patched.setattr(Program, "communicate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shell.run("echo first", b"", 20)
    assert shell.run("echo second", b"", 20).stdout == b"second\n"


def test_an_abandoned_command_loses_its_input_and_the_next_one_gets_another_shell(
    shell: RootShell, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    abandoned = begun(shell, left)
    abandoned.kill()
    assert abandoned.wait(20) == LOST
    assert shell.start("echo next").communicate(timeout=20) == (b"next\n", b"")
    appears(left)
    assert logins(tmp_path) == 2


def test_a_command_loses_its_input_when_the_shell_closes(shell: RootShell, tmp_path: Path) -> None:
    left = tmp_path / "left"
    begun(shell, left)
    shell.close()
    appears(left)
