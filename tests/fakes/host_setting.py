# SPDX-License-Identifier: GPL-2.0-or-later
"""A checkout on a host made of files, for the tests of what links change on the host."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.model.errors import FwlabError
from fwlab.testbed.hardware import checkout_key
from fwlab.testbed.host_links import prepare
from fwlab.testbed.host_links.prepare import HostLinks
from fwlab.testbed.link_kinds import LINKS
from tests import ROOT
from tests.checkout import TOPOLOGY
from tests.fakes.fake_host import VFS, VIRTIO_VFS, FakeHost

LAB = "lab03-ipset"
MACVTAP = "macvtap:\n  generator-dut: { nic: dummy }\n  dut-sink: { nic: enp9s0 }\n"
SRIOV = f"""sriov:
  generator-dut:
    ends: {{ generator: "{VFS[0]}", dut: "{VFS[1]}" }}
    vlan: 101
    trust: true
    spoof_check: false
  dut-sink:
    ends: {{ dut: "{VFS[2]}", sink: "{VFS[3]}" }}
    vlan: 102
"""
_FIRST, _SECOND = VIRTIO_VFS.values()
VIRTIO_SRIOV = f"""sriov:
  generator-dut:
    ends: {{ generator: "{_FIRST[0]}", dut: "{_FIRST[1]}" }}
    vlan: 0
    spoof_check: false
  dut-sink:
    ends: {{ dut: "{_SECOND[0]}", sink: "{_SECOND[1]}" }}
    spoof_check: false
"""


class Setting:
    """A checkout, a host of files, and what links do to it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = Project(root / "checkout")
        for lab in (LAB, "lab04-nftables"):
            (self.project.labs / lab).mkdir(parents=True)
            (self.project.labs / lab / "lab.yml").write_text("")
        shutil.copy(ROOT / "topology.yml", self.project.root)
        self.host = FakeHost(root / "host")
        self.kernels = ["6.1.0-56-amd64"]
        self.links = self.of(self.project)
        self.environment = monkeypatch
        monkeypatch.setattr(prepare.os, "geteuid", lambda: 0)
        monkeypatch.setenv("FWLAB_LIBVIRT_URI", "qemu:///system")
        monkeypatch.delenv("FWLAB_LINK", raising=False)
        kinds = {
            name: dataclasses.replace(kind, devices=self.host.devices) if dataclasses.is_dataclass(kind) else kind
            for name, kind in LINKS.items()
        }
        monkeypatch.setattr(prepare, "kernels_of_boxes", lambda _project: self.kernels)
        monkeypatch.setattr(prepare, "LINKS", kinds)

    def of(self, project: Project) -> HostLinks:
        return HostLinks(project, TOPOLOGY, self.host.devices, self.host, self.host.root / "run")

    def file(self, text: str) -> None:
        (self.project.root / "host.yml").write_text(text)

    def up(self, kind: str, lab: str = LAB) -> None:
        self.links.prepare(lab, dict.fromkeys(TOPOLOGY.links, kind))

    @property
    def machine(self) -> str:
        """libvirt's name of the DUT."""
        return f"fwlab-{checkout_key(self.project.root)}-{LAB}"

    @property
    def records(self) -> list[str]:
        return sorted(path.name for path in (self.host.root / "run").glob("*.json"))

    def refused(self, kind: str) -> FwlabError:
        """The error of `up`, which must leave the host as it was."""
        before = self.host.nics()
        with pytest.raises(FwlabError) as error:
            self.up(kind)
        assert self.host.nics() == before
        assert self.records == []
        return error.value
