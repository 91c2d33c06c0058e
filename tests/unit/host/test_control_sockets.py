# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of SSH's sockets has a name that anybody can guess, so it is used only if it is ours alone."""

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


@pytest.mark.parametrize("fault", ["lets others in", "of another user", "a link"])
def test_another_folder_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    folder.mkdir(mode=0o700)
    match fault:
        case "lets others in":
            folder.chmod(0o777)
        case "of another user":
            other = os.getuid() + 1
            folder.rename(folder.with_name(f"fwlab-ssh-{other}"))
            monkeypatch.setattr(ssh.os, "getuid", lambda: other)
        case "a link":
            folder.rename(folder.with_name("elsewhere"))
            folder.symlink_to(folder.with_name("elsewhere"))
    with pytest.raises(CannotMeasure, match="not a folder of yours alone") as refused:
        ssh.control_sockets()
    assert "export TMPDIR=" in refused.value.hint
