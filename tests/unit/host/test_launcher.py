# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that a helper on the node starts; here a shell of this host stands for the login."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.host.launcher import Launched, Launcher
from fwlab.host.root_shell import LOST


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    """A launcher whose login is counted in `logins`, and whose sudo is none."""
    login = tmp_path / "login"
    login.write_text('#!/bin/sh\necho in >>"${0%/*}/logins"\nsudo() { exec "$@"; }\neval "$1"\n')
    login.chmod(0o755)
    made = Launcher([str(login)])
    yield made
    made.close()


def begun(launcher: Launcher, left: Path) -> Launched:
    """A program that waits for the end of its input and leaves a file then, once it runs."""
    runs = left.with_name("runs")
    running = launcher.start(f"touch {runs}; cat >/dev/null; touch {left}")
    appears(runs)
    return running


def appears(path: Path) -> None:
    subprocess.run(["sh", "-c", f"while ! [ -e {path} ]; do sleep 0.05; done"], timeout=20, check=True)


def logins(folder: Path) -> int:
    return (folder / "logins").read_text().count("in")


def test_programs_share_one_login_and_keep_their_answers_apart(launcher: Launcher, tmp_path: Path) -> None:
    first = launcher.start("read word; echo got $word; echo oops >&2; exit 3")
    assert first.returncode is None
    assert first.communicate(b"stop\n", timeout=20) == (b"got stop\n", b"oops\n")
    assert first.returncode == 3
    second = launcher.start("printf 'a\\nb'")
    assert second.wait(20) == 0
    assert second.communicate(b"stop\n", timeout=20) == (b"a\nb", b"")
    assert logins(tmp_path) == 1


def test_a_wait_ends_in_time_and_the_program_goes_on(launcher: Launcher) -> None:
    running = launcher.start("read word; echo $word")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.1)
    assert running.communicate(b"late\n", timeout=20) == (b"late\n", b"")


def test_an_abandoned_program_loses_its_input_and_the_next_one_gets_another_helper(
    launcher: Launcher, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    begun(launcher, left).kill()
    assert launcher.start("echo next").communicate(timeout=20) == (b"next\n", b"")
    appears(left)
    assert logins(tmp_path) == 2


def test_a_login_that_fails_is_a_lost_connection_with_its_reason() -> None:
    launcher = Launcher(["sh", "-c", "echo no route >&2; exit 255"])
    lost = launcher.start("true")
    assert lost.communicate(timeout=20) == (b"", b"no route\n")
    assert lost.returncode == LOST


def test_the_program_ends_when_the_launcher_closes(launcher: Launcher, tmp_path: Path) -> None:
    left = tmp_path / "left"
    begun(launcher, left)
    launcher.close()
    appears(left)
