# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a host cannot carry a link: each reason with the next command, and the host as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed.hardware import checkout_key
from fwlab.testbed.host_links import prepare
from tests.fakes.fake_host import VFS
from tests.fakes.host_setting import LAB, MACVTAP, SRIOV, TOPOLOGY, Setting


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(tmp_path, monkeypatch)


def sriov(change: Callable[[Setting], object], **host: object) -> Callable[[Setting], None]:
    """A host with virtual functions that host.yml names, and this change."""

    def prepared(here: Setting) -> None:
        here.host.sriov(**host)
        here.file(SRIOV)
        change(here)

    return prepared


def taken(here: Setting) -> None:
    here.host.bind(VFS[1], "vfio-pci")
    here.host.machine(70, "mailserver", "-device", f'{{"driver":"vfio-pci","host":"{VFS[1]}"}}')


def wireless(here: Setting) -> None:
    here.host.nic("wlp2s0", wireless=True)
    here.file(MACVTAP.replace("enp9s0", "wlp2s0"))


def used(here: Setting) -> None:
    here.file(MACVTAP)
    here.host.own_addresses["enp9s0"] = ["192.0.2.7"]


def bridged(here: Setting) -> None:
    here.file(MACVTAP)
    here.host.nic("br0")
    (here.host.root / "sys/class/net/enp9s0/master").symlink_to(here.host.root / "sys/class/net/br0")


def iommu_without_vfs(here: Setting) -> None:
    (here.host.root / "sys/kernel/iommu_groups/1").mkdir(parents=True)


OUT = "test traffic would leave this host"
#: By situation: the kind of link, the change, the message, the hint and the exit code.
REFUSED: dict[str, tuple[str, Callable[[Setting], object], str, str, int]] = {
    "a VF of another machine": (
        "sriov",
        sriov(taken),
        f"host.yml: sriov.generator-dut.ends.dut: {VFS[1]} is taken by the machine mailserver",
        "name another VF in host.yml, or end that machine: virsh shutdown mailserver",
        3,
    ),
    "a physical function that is down": (
        "sriov",
        sriov(lambda here: here.host.nic("enp1s0", state="down")),
        f"host.yml: sriov.generator-dut.ends.generator: {VFS[0]}: its physical function enp1s0 is down",
        "ip link set dev enp1s0 up",
        3,
    ),
    "a physical function with the host's address": (
        "sriov",
        sriov(lambda here: here.host.own_addresses.update(enp1s0=["192.0.2.7"])),
        "its physical function enp1s0 has the host's address",
        "",
        2,
    ),
    "no IOMMU": (
        "sriov",
        sriov(lambda _: None, iommu=False),
        "link kind sriov: this host has no IOMMU groups",
        "intel_iommu=on",
        3,
    ),
    "no VFs": (
        "sriov",
        sriov(iommu_without_vfs, vfs=0),
        "link kind sriov: no NIC has virtual functions",
        "echo 4 >/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs",
        3,
    ),
    "boxes whose kernel has no driver": (
        "sriov",
        sriov(lambda here: here.kernels.append("6.1.0-56-cloud-amd64")),
        "link kind sriov: the boxes have Debian's cloud kernel",
        "FWLAB_KERNEL=full make boxes",
        3,
    ),
    "a wireless NIC": (
        "macvtap",
        wireless,
        "host.yml: macvtap.dut-sink.nic: wlp2s0 is wireless",
        "name a wired NIC, or dummy, in host.yml",
        2,
    ),
    "a NIC with the host's address": ("macvtap", used, f"enp9s0 has the host's address 192.0.2.7/24: {OUT}", "", 2),
    "a port of a bridge": ("macvtap", bridged, f"enp9s0 is a port of br0: {OUT}", "", 2),
    "a firewall that sees bridged frames": (
        "virtio",
        lambda here: here.host.write("proc/sys/net/bridge/bridge-nf-call-iptables", "1\n"),
        "link kind virtio: the host's own firewall sees bridged frames",
        "sysctl net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0",
        3,
    ),
    "a bridge of that name that is not ours": (
        "virtio",
        lambda here: here.host.nic(f"fwl-{checkout_key(here.project.root)[:6]}-031"),
        f"-031 is taken by a NIC that {LAB} did not make",
        "if nobody needs it: ip link delete dev fwl-",
        3,
    ),
    "an ordinary user's libvirt": (
        "virtio",
        lambda here: here.environment.setenv("FWLAB_LIBVIRT_URI", "qemu:///session"),
        "qemu:///session may not attach machines",
        "export FWLAB_LIBVIRT_URI=qemu:///system",
        3,
    ),
    "no tun": ("virtio", lambda here: (here.host.root / "dev/net/tun").unlink(), "/dev/net/tun", "modprobe tun", 3),
    "no vhost": (
        "virtio",
        lambda here: (here.host.root / "dev/vhost-net").unlink(),
        "/dev/vhost-net",
        "modprobe vhost_net",
        3,
    ),
}


@pytest.mark.parametrize(("kind", "change", "message", "hint", "code"), REFUSED.values(), ids=REFUSED)
def test_a_host_that_cannot_carry_the_link_is_left_as_it_was(
    here: Setting, kind: str, change: Callable[[Setting], object], message: str, hint: str, code: int
) -> None:
    change(here)
    error = here.refused(kind)
    assert message in error.message
    assert hint in error.hint
    assert error.exit_code == code


def test_a_vf_of_the_labs_own_running_machine_is_not_taken(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.host.bind(VFS[1], "vfio-pci")
    here.host.machine(70, here.machine, "-device", f'{{"driver":"vfio-pci","host":"{VFS[1]}"}}')
    here.up("sriov")


def test_a_vf_of_another_checkouts_lab_is_refused(here: Setting, tmp_path: Path) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.up("sriov")
    other = Project(tmp_path / "other")
    shutil.copytree(here.project.root, other.root)
    with pytest.raises(CannotMeasure) as error:
        here.of(other).prepare("lab04-nftables", dict.fromkeys(TOPOLOGY.links, "sriov"))
    assert error.value.message == f"host.yml: {VFS[0]} carries a link of {LAB} in {here.project.root}"
    assert error.value.hint.startswith(f"there: vagrant destroy -f {LAB}")


def test_vfs_beside_other_links_are_refused(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    before = here.host.nics()
    with pytest.raises(BadInput, match="links of kinds sriov and virtio in one lab") as error:
        here.links.prepare(LAB, {"generator-dut": "virtio", "dut-sink": "sriov"})
    assert error.value.hint.startswith("export FWLAB_LINK=sriov")
    assert here.host.nics() == before


def test_without_root_the_command_for_root_is_complete(here: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare.os, "geteuid", lambda: 1000)
    hint = here.refused("virtio").hint
    assert hint == f"sudo provision/host/links up {LAB} generator-dut=virtio dut-sink=virtio"
    here.up("socket")
    monkeypatch.setattr(prepare.os, "geteuid", lambda: 0)
    here.up("virtio")
    monkeypatch.setattr(prepare.os, "geteuid", lambda: 1000)
    here.up("virtio")  # root has run the command: there is nothing left to do
    with pytest.raises(CannotMeasure, match="can only be undone by root") as error:
        here.links.restore(LAB)
    assert error.value.hint == f"sudo provision/host/links restore {LAB}"


def test_vfs_that_disappear_during_a_run_are_named(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.up("sriov")
    assert here.links.lost(LAB) is None
    here.host.nic("enp1s0", state="down")
    assert "enp1s0, the physical function of the VF" in here.links.lost(LAB).message
    here.host.nic("enp1s0")
    here.host.lose_vfs()
    lost = here.links.lost(LAB)
    assert lost.message == f"this host lost a link of {LAB}: the VF {VFS[0]} of enp1s0 is gone"
    assert lost.hint.startswith(f"vagrant destroy -f {LAB}")
    assert lost.exit_code == 3
    assert here.links.restore(LAB), "those that are there are restored"
    assert here.records == []
