# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell that stays open on a node; here a shell of this host stands for the login."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.host.root_shell import LOST, RootShell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[RootShell]:
    """A shell whose login is counted in `logins`, and whose sudo is none."""
    login = tmp_path / "login"
    login.write_text('#!/bin/sh\necho in >>"${0%/*}/logins"\nsudo() { exec "$@"; }\neval "$1"\n')
    login.chmod(0o755)
    made = RootShell([str(login)])
    yield made
    made.close()


def test_commands_share_one_login_and_keep_their_answers_apart(shell: RootShell, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    first = shell.run("cat; echo oops >&2; exit 3", data, 20)
    assert (first.returncode, first.stdout, first.stderr) == (3, data, b"oops\n")
    second = shell.run("printf 'a\\nb'", b"", 20)
    assert (second.returncode, second.stdout, second.stderr) == (0, b"a\nb", b"")
    assert shell.run("cat", b"", 20).stdout == b""
    assert (tmp_path / "logins").read_text() == "in\n"


def test_a_command_that_takes_too_long_ends_the_shell_and_the_next_one_opens_another(
    shell: RootShell, tmp_path: Path
) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        shell.run("sleep 5", b"", 0.2)
    assert shell.run("echo again", b"", 20).stdout == b"again\n"
    assert (tmp_path / "logins").read_text() == "in\nin\n"


def test_a_connection_that_ends_is_told_by_its_status_and_the_last_words(shell: RootShell) -> None:
    lost = shell.run("echo gone >&2; kill -KILL $PPID", b"", 20)
    assert (lost.returncode, lost.stdout) == (LOST, b"")
    assert shell.run("echo again", b"", 20).stdout == b"again\n"


def test_a_login_that_fails_is_a_lost_connection_with_its_reason() -> None:
    shell = RootShell(["sh", "-c", "echo no route >&2; exit 255"])
    lost = shell.run("true", b"", 20)
    assert (lost.returncode, lost.stderr) == (LOST, b"no route\n")


def test_an_interrupted_command_leaves_no_answer_to_the_next_one(
    shell: RootShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    shell.run("true", b"", 20)
    monkeypatch.setattr("fwlab.host.root_shell._exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shell.run("echo first", b"", 20)
    monkeypatch.undo()
    assert shell.run("echo second", b"", 20).stdout == b"second\n"
