# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of SSH's sockets has a name that anybody can guess, so it is used only if it is ours alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fwlab.host import ssh
from fwlab.model.errors import CannotMeasure


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ssh.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path / f"fwlab-ssh-{os.getuid()}"


def test_it_is_made_for_us_alone_and_used_again(folder: Path) -> None:
    assert ssh.control_sockets() == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert ssh.control_sockets() == folder


def test_one_that_lets_others_in_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(CannotMeasure, match="not a folder of yours alone"):
        ssh.control_sockets()


def test_one_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    owner = os.getuid()
    monkeypatch.setattr(ssh.os, "getuid", lambda: owner + 1)
    folder.rename(folder.with_name(f"fwlab-ssh-{owner + 1}"))
    with pytest.raises(CannotMeasure, match="export TMPDIR="):
        ssh.control_sockets()


def test_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CannotMeasure):
        ssh.control_sockets()
