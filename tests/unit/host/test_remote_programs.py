# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that a helper on the node starts; here a shell of this host takes the place of the login."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.host.remote_programs import LOST, RemoteProgram, RemotePrograms

NO_ROUTE = ["sh", "-c", "echo no route >&2; exit 255"]


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[RemotePrograms]:
    """Programs whose login is counted in `logins`, and whose sudo is none."""
    login = tmp_path / "login"
    login.write_text('#!/bin/sh\necho in >>"${0%/*}/logins"\nsudo() { exec "$@"; }\neval "$1"\n')
    login.chmod(0o755)
    made = RemotePrograms([str(login)])
    yield made
    made.close()


def begun(programs: RemotePrograms, left: Path) -> RemoteProgram:
    """A program that waits for the end of its input and leaves a file then, once it runs."""
    runs = left.with_name("runs")
    running = programs.start(f"touch {runs}; cat >/dev/null; touch {left}")
    appears(runs)
    return running


def appears(path: Path) -> None:
    subprocess.run(["sh", "-c", f"while ! [ -e {path} ]; do sleep 0.05; done"], timeout=20, check=True)


def logins(folder: Path) -> int:
    return (folder / "logins").read_text().count("in")


def test_programs_share_one_login_and_keep_their_answers_apart(programs: RemotePrograms, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    first = programs.start("cat; echo oops >&2; exit 3")
    assert first.returncode is None
    assert (first.communicate(data, timeout=20), first.returncode) == ((data, b"oops\n"), 3)
    second = programs.start("printf 'a\\nb'")
    assert second.wait(20) == 0
    assert second.communicate(b"stop\n", timeout=20) == (b"a\nb", b"")
    ran = programs.run("cat; exit 4", data, 20)
    assert (ran.returncode, ran.stdout, ran.stderr) == (4, data, b"")
    assert programs.run("cat", b"", 20).stdout == b""
    assert programs.run("true", data, 20).returncode == 0, "unread input harms nothing"
    assert logins(tmp_path) == 1


def test_a_wait_ends_in_time_and_the_program_goes_on(programs: RemotePrograms) -> None:
    running = programs.start("read word; echo $word")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.1)
    assert running.communicate(b"late\n", timeout=20) == (b"late\n", b"")


def test_a_run_that_takes_too_long_ends_the_helper(programs: RemotePrograms, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run("sleep 5", b"", 0.2)
    assert programs.run("echo again", b"", 20).stdout == b"again\n"
    assert logins(tmp_path) == 2


def test_an_abandoned_program_loses_its_input_and_the_next_one_gets_another_helper(
    programs: RemotePrograms, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    begun(programs, left).kill()
    assert programs.start("echo next").communicate(timeout=20) == (b"next\n", b"")
    appears(left)
    assert logins(tmp_path) == 2


def test_a_lost_connection_is_a_status_with_its_reason(programs: RemotePrograms) -> None:
    lost = programs.run("echo gone >&2; kill -KILL $PPID", b"", 20)
    assert (lost.returncode, lost.stdout) == (LOST, b"")
    assert programs.run("echo again", b"", 20).stdout == b"again\n"
    never = RemotePrograms(NO_ROUTE).start("true")
    assert (never.communicate(timeout=20), never.returncode) == ((b"", b"no route\n"), LOST)
    assert RemotePrograms(NO_ROUTE).run("true", b"", 20).stderr == b"no route\n"


def test_an_interrupted_run_leaves_no_answer_to_the_next_one(
    programs: RemotePrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    programs.run("true", b"", 20)
    with monkeypatch.context() as patched:
        patched.setattr(RemoteProgram, "communicate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            programs.run("echo first", b"", 20)
    assert programs.run("echo second", b"", 20).stdout == b"second\n"


def test_a_program_ends_when_its_helper_is_closed(programs: RemotePrograms, tmp_path: Path) -> None:
    left = tmp_path / "left"
    begun(programs, left)
    programs.close()
    appears(left)
