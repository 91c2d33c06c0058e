# SPDX-License-Identifier: GPL-2.0-or-later
"""A host whose CPU is not that of the boxes emulates them, and builds none."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.host import kvm_probe
from fwlab.host.hardware_probe import probe_hardware
from fwlab.host.kvm_probe import other_architecture
from fwlab.images.boxes import BuildError
from fwlab.images.build import Builder
from fwlab.images.programs import PackerTools, Subprocesses
from fwlab.measure.provenance import cpu_of_lscpu
from tests import ROOT
from tests.fakes.fake_host import FakeHost
from tests.unit.images.test_packer_tools import complete

NEOVERSE = """Architecture:                       aarch64
  CPU op-mode(s):                   32-bit, 64-bit
Vendor ID:                          ARM
  Model name:                       Neoverse-N1
"""
APPLE = "Architecture:  aarch64\nVendor ID:  Apple\n  Model name:  -\n"


@pytest.fixture
def arm64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")


@pytest.mark.parametrize(("machine", "other"), [("x86_64", ""), ("amd64", ""), ("aarch64", "aarch64")])
def test_which_architecture_is_another(monkeypatch: pytest.MonkeyPatch, machine: str, other: str) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert other_architecture() == other


@pytest.mark.usefixtures("arm64")
def test_its_kvm_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe, "DEVICE", Path("/dev/null"))
    kernel = tmp_path / "vmlinuz"
    kernel.write_text("a kernel")
    answer = kvm_probe.kvm_works(kernel, again=True)
    assert (answer.works, answer.why) == (False, "this host is aarch64, where KVM cannot run x86_64 guests")
    (kvm, *_) = probe_hardware(FakeHost(tmp_path / "host").devices, FakeHost(tmp_path / "host"), answer, 8)
    assert kvm.next.startswith("work on the virtual testbed")


@pytest.mark.usefixtures("arm64")
def test_it_builds_no_box_and_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    complete(programs, "echo Packer v1.6.6")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(BuildError, match="this host is aarch64 and the boxes are x86_64") as refused:
        Builder(Project(ROOT), tmp_path / "cache", Subprocesses(), print).make_box("sink", "0" * 64, tmp_path / "x.box")
    assert refused.value.hint.startswith("make boxes IMPORT=")
    assert not (tmp_path / "cache").exists()


def test_a_host_of_the_boxes_architecture_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    programs = tmp_path / "bin"
    programs.mkdir()
    complete(programs, "echo Packer v1.6.6")
    monkeypatch.setenv("PATH", str(programs))
    PackerTools().require(ROOT / "packer")


@pytest.mark.parametrize(
    ("said", "cpu"),
    [
        (NEOVERSE, "ARM Neoverse-N1 aarch64"),
        (APPLE, "Apple aarch64"),
        ("Architecture: x86_64\nVendor ID: AuthenticAMD\nModel name: AMD EPYC\n", "AuthenticAMD AMD EPYC"),
        ("", ""),
    ],
)
def test_the_cpus_name_where_the_kernel_has_none(said: str, cpu: str) -> None:
    assert cpu_of_lscpu(said) == cpu
