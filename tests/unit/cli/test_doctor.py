# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab doctor`: which libvirt must run, and which programs are required."""

import os
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.cli import doctor

OWN = "qemu:///session" if os.getuid() else "qemu:///system"


@pytest.mark.parametrize(
    ("uri", "script", "ok", "says"),
    [
        (OWN, "exit 0", True, "answers"),
        (OWN, "exit 1", True, "`vagrant up` starts it"),
        ("qemu+ssh://far/system", "echo far does not answer >&2; exit 1", False, "far does not answer"),
        (OWN, r"printf 'libvirt: /h is too long\n  next: a way\n' >&2; exit 2", False, "/h is too long"),
    ],
)
def test_a_libvirt_that_vagrant_up_starts_need_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, script: str, ok: bool, says: str
) -> None:
    path = tmp_path / "provision/host/libvirt"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("FWLAB_LIBVIRT_URI", uri)
    found = doctor._libvirt(Project(tmp_path))
    assert found.ok is ok
    assert says in found.says
    assert ok or found.next


@pytest.mark.parametrize("boxes_built", [True, False])
def test_packer_is_required_until_the_boxes_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxes_built: bool
) -> None:
    monkeypatch.setattr(doctor, "PROGRAMS", ("packer-of-no-host", "vagrant-of-no-host"))
    monkeypatch.setattr(doctor, "BUILDING", ("packer-of-no-host",))
    monkeypatch.setenv("PATH", str(tmp_path))
    packer, vagrant = doctor.programs(boxes_built=boxes_built)
    assert (packer.ok, vagrant.ok) == (False, False)
    assert (packer.required, vagrant.required) == (not boxes_built, True)
