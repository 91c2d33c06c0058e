# SPDX-License-Identifier: GPL-2.0-or-later
"""Packer and its plugins are needed by the host that builds a box, and by no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.images.boxes import BuildError, publish
from fwlab.images.build import Builder
from fwlab.images.programs import PackerTools, Subprocesses
from tests import ROOT


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH, as a folder that programs can be put into."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def script(folder: Path, name: str, lines: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
    (folder / name).chmod(0o755)


def complete(folder: Path, packer: str) -> Path:
    """All programs, with this packer, which notes how often it was called in the file that is returned."""
    calls = folder.parent / "calls"
    for name in ("qemu-system-x86_64", "qemu-img", "zstd"):
        script(folder, name, "exit 1")
    script(folder, "packer", f'echo "$*" >> {calls}\n{packer}')
    return calls


@pytest.mark.usefixtures("programs")
def test_a_box_that_is_built_needs_no_packer(tmp_path: Path) -> None:
    builder = Builder(Project(ROOT), tmp_path, Subprocesses(), print)
    key = builder.key("sink")
    (tmp_path / "boxes").mkdir()
    (tmp_path / "locks").mkdir()
    (tmp_path / "made").write_bytes(b"a box")
    publish(tmp_path / "made", tmp_path / f"boxes/sink-{key[:12]}.box", {"key": key, "manifest": {"kernel": "6.1"}})
    assert builder.ready_box("sink")["manifest"] == {"kernel": "6.1"}


@pytest.mark.usefixtures("programs")
def test_a_box_that_is_not_built_needs_it_and_nothing_is_begun(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="packer is missing") as refused:
        Builder(Project(ROOT), tmp_path / "cache", Subprocesses(), print).make_box("sink", "0" * 64, tmp_path / "x.box")
    assert "guides/hosts.md" in refused.value.hint
    assert (ROOT / "guides/hosts.md").exists()
    assert not (tmp_path / "cache").exists()


def test_each_program_is_named(programs: Path) -> None:
    script(programs, "packer", "echo Packer v1.6.6")
    with pytest.raises(BuildError, match="qemu-system-x86_64 is missing") as refused:
        PackerTools().require(ROOT / "packer")
    assert refused.value.hint == "run provision/host/install as root"


@pytest.mark.parametrize(("version", "asked"), [("v1.6.6", ["version"]), ("v1.11.2", ["version", "init"])])
def test_a_new_packer_gets_its_plugins_once(programs: Path, version: str, asked: list[str]) -> None:
    calls = complete(programs, f'[ "$1" = init ] || echo "Packer {version}"')
    tools = PackerTools()
    for _ in range(2):
        tools.require(ROOT / "packer")
    assert [line.split()[0] for line in calls.read_text().splitlines()] == asked


def test_plugins_that_cannot_be_had_are_an_error_each_time(programs: Path) -> None:
    complete(programs, '[ "$1" = init ] && { echo no route; exit 1; }\necho "Packer v1.11.2"')
    tools = PackerTools()
    for _ in range(2):
        with pytest.raises(BuildError, match="Packer's plugins are missing: no route"):
            tools.require(ROOT / "packer")
