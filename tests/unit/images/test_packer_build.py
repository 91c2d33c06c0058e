# SPDX-License-Identifier: GPL-2.0-or-later
"""The command packer/build: its Python, and the accelerator of its machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fwlab.host.kvm_probe import KvmAnswer
from fwlab.images.__main__ import add_to_vagrant
from fwlab.images.build import guest_accelerator
from fwlab.images.programs import Subprocesses
from fwlab.model.errors import BadInput
from tests.fakes.image_build import PACKER, build


def test_without_a_venv_the_next_command_is_named(tmp_path: Path) -> None:
    (tmp_path / "packer").mkdir()
    shutil.copy(PACKER / "build", tmp_path / "packer")
    done = subprocess.run([tmp_path / "packer/build"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"packer/build: there is no {tmp_path}/.venv\n  next: make setup\n"


def test_packer_build_runs_this_checkouts_package(tmp_path: Path) -> None:
    """From any working directory, even one with a package of the same name."""
    (tmp_path / "packer").mkdir()
    shutil.copy(PACKER / "build", tmp_path / "packer")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    for folder, says in ((tmp_path / "fwlab/images", "this one"), (tmp_path / "elsewhere/fwlab/images", "another")):
        folder.mkdir(parents=True)
        (folder / "__main__.py").write_text(f"import sys; print({says!r}, sys.argv[1:])")
        for package in (folder, folder.parent):
            (package / "__init__.py").touch()
    argv, where = [tmp_path / "packer/build", "--no-vagrant", "sink"], tmp_path / "elsewhere"
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)
    words = ["--checkout", str(tmp_path), "--no-vagrant", "sink"]
    assert done.stdout == f"this one {words}\n", done.stderr


@pytest.mark.parametrize("value", ["kvm", "tcg"])
def test_fwlab_accel_decides_without_a_probe(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FWLAB_ACCEL", value)
    monkeypatch.setattr("fwlab.images.build.kvm_works", lambda *_, **__: pytest.fail("KVM was tried"))
    assert guest_accelerator(None) == value


@pytest.mark.parametrize(("works", "word"), [(True, "kvm"), (False, "tcg")])
def test_otherwise_kvm_is_probed_with_the_bases_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, works: bool, word: str
) -> None:
    monkeypatch.setenv("FWLAB_ACCEL", "")
    tried = []

    def probe(kernel: Path, *, boot_sector: bool) -> KvmAnswer:
        tried.append((kernel, boot_sector))
        return KvmAnswer(works, "a test")

    monkeypatch.setattr("fwlab.images.build.kvm_works", probe)
    assert guest_accelerator(tmp_path / "vmlinuz") == word
    assert tried == [(tmp_path / "vmlinuz", True)]


@pytest.mark.parametrize("value", ["qemu", "KVM", "hvf"])
def test_a_wrong_fwlab_accel_stops_the_build_before_it_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.setenv("FWLAB_ACCEL", value)
    with pytest.raises(BadInput, match=f"FWLAB_ACCEL={value}: must be tcg or kvm") as refused:
        guest_accelerator(None)
    assert refused.value.hint == "export FWLAB_ACCEL=tcg"
    done = build("--no-vagrant", "sink", FWLAB_ACCEL=value, FWLAB_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert f"FWLAB_ACCEL={value}: must be tcg or kvm" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_boxes_of_a_cache_that_was_copied_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a cache has boxes but no folder for logs, because nothing was built there."""
    vagrant = tmp_path / "bin/vagrant"
    vagrant.parent.mkdir()
    vagrant.write_text("#!/bin/sh\necho added\n")
    vagrant.chmod(0o755)
    monkeypatch.setenv("PATH", f"{vagrant.parent}:/usr/bin:/bin")
    monkeypatch.setenv("VAGRANT_HOME", str(tmp_path / "home"))
    box = tmp_path / "cache/boxes/sink-0.box"
    add_to_vagrant({"box": "fwlab-sink-0", "path": str(box)}, Subprocesses())
    assert (tmp_path / "cache/logs/vagrant.log").read_text() == "added\n"
