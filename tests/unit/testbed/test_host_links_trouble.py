# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a host cannot carry a link: each reason with the next command, and the host as it was."""

from __future__ import annotations

import shutil
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


def test_a_vf_of_another_machine_is_refused(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.host.bind(VFS[1], "vfio-pci")
    here.host.machine(70, "mailserver", "-device", f'{{"driver":"vfio-pci","host":"{VFS[1]}"}}')
    error = here.refused("sriov")
    where = f"host.yml: sriov.generator-dut.ends.dut: {VFS[1]}"
    assert error.message == f"{where} is taken by the machine mailserver"
    assert error.hint == "name another VF in host.yml, or end that machine: virsh shutdown mailserver"
    assert error.exit_code == 3


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


def test_a_physical_function_that_is_down_is_refused(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.host.nic("enp1s0", state="down")
    error = here.refused("sriov")
    where = f"host.yml: sriov.generator-dut.ends.generator: {VFS[0]}"
    assert error.message == f"{where}: its physical function enp1s0 is down"
    assert error.hint == "ip link set dev enp1s0 up, and look at its cable"
    assert error.exit_code == 3


def test_without_an_iommu_no_vf_is_touched(here: Setting) -> None:
    here.host.sriov(iommu=False)
    here.file(SRIOV)
    error = here.refused("sriov")
    assert error.message.startswith("link kind sriov: this host has no IOMMU groups")
    assert "intel_iommu=on" in error.hint
    assert error.exit_code == 3


def test_without_vfs_the_command_that_makes_them_is_named(here: Setting) -> None:
    here.host.sriov(vfs=0)
    (here.host.root / "sys/kernel/iommu_groups/1").mkdir(parents=True)
    here.file(SRIOV)
    error = here.refused("sriov")
    assert error.message == "link kind sriov: no NIC has virtual functions"
    assert error.hint == "echo 4 >/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs"


def test_boxes_whose_kernel_has_no_driver_are_refused(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.kernels.append("6.1.0-56-cloud-amd64")
    error = here.refused("sriov")
    assert error.message.startswith("link kind sriov: the boxes have Debian's cloud kernel")
    assert error.hint == "FWLAB_KERNEL=full make boxes"


def test_vfs_beside_other_links_are_refused(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    before = here.host.nics()
    with pytest.raises(BadInput, match="links of kinds sriov and virtio in one lab") as error:
        here.links.prepare(LAB, {"generator-dut": "virtio", "dut-sink": "sriov"})
    assert error.value.hint.startswith("export FWLAB_LINK=sriov")
    assert here.host.nics() == before


def test_a_bridge_of_that_name_that_is_not_ours_is_left_alone(here: Setting) -> None:
    name = f"fwl-{checkout_key(here.project.root)[:6]}-031"
    here.host.nic(name)
    error = here.refused("virtio")
    assert error.message == f"link dut-sink: the name {name} is taken by a NIC that {LAB} did not make"
    assert f"ip link delete dev {name}" in error.hint
    assert error.exit_code == 3


def test_macvtap_on_a_wireless_nic_is_refused(here: Setting) -> None:
    here.host.nic("wlp2s0", wireless=True)
    here.file(MACVTAP.replace("enp9s0", "wlp2s0"))
    error = here.refused("macvtap")
    assert error.message.startswith("host.yml: macvtap.dut-sink.nic: wlp2s0 is wireless")
    assert error.hint == "name a wired NIC, or dummy, in host.yml"
    assert error.exit_code == 2


def test_a_nic_that_leads_out_of_the_host_is_refused(here: Setting) -> None:
    """Test traffic never leaves the project's machines."""
    here.file(MACVTAP)
    here.host.own_addresses["enp9s0"] = ["192.0.2.7"]
    said = (
        "host.yml: macvtap.dut-sink.nic: enp9s0 has the host's address 192.0.2.7/24: test traffic would leave this host"
    )
    assert here.refused("macvtap").message == said
    here.host.own_addresses.clear()
    here.host.nic("br0")
    (here.host.root / "sys/class/net/enp9s0/master").symlink_to(here.host.root / "sys/class/net/br0")
    assert "enp9s0 is a port of br0: test traffic would leave this host" in here.refused("macvtap").message


def test_a_physical_function_with_the_hosts_address_is_refused(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.host.own_addresses["enp1s0"] = ["192.0.2.7"]
    assert "its physical function enp1s0 has the host's address" in here.refused("sriov").message


def test_a_host_whose_firewall_sees_bridged_frames_is_refused(here: Setting) -> None:
    here.host.write("proc/sys/net/bridge/bridge-nf-call-iptables", "1\n")
    error = here.refused("virtio")
    assert error.message.startswith("link kind virtio: the host's own firewall sees bridged frames")
    assert error.hint == "sysctl net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0"


@pytest.mark.parametrize("name", ["dev/net/tun", "dev/vhost-net"])
def test_a_missing_kernel_module_is_named(here: Setting, name: str) -> None:
    (here.host.root / name).unlink()
    assert here.refused("virtio").hint == {"dev/net/tun": "modprobe tun", "dev/vhost-net": "modprobe vhost_net"}[name]


def test_an_ordinary_users_libvirt_is_refused(here: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_LIBVIRT_URI", "qemu:///session")
    assert "qemu:///session may not attach machines" in here.refused("virtio").message


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
