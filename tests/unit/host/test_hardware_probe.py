# SPDX-License-Identifier: GPL-2.0-or-later
"""What `fwlab doctor` says about the host's hardware and about host.yml, on hosts made of files."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from fwlab.checkout.project import Project, validated
from fwlab.cli import doctor
from fwlab.cli.main import app
from fwlab.host.hardware_probe import Finding, probe_hardware
from fwlab.host.kvm_probe import KvmAnswer
from fwlab.model.errors import BadInput
from fwlab.testbed.host_file import HostFile, draft, load_host_file
from tests import ROOT
from tests.checkout import TOPOLOGY
from tests.fakes.fake_host import VFS, VIRTIO_VFS, FakeHost

WORKS = KvmAnswer(True, "KVM runs a kernel")
MEMINFO = "MemTotal:  16 kB\nHugePages_Total:     {total}\nHugePages_Free:       {total}\nHugepagesize:       2048 kB\n"


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    """A host that has everything."""
    made = FakeHost(tmp_path / "host")
    made.sriov()
    made.write("proc/meminfo", MEMINFO.format(total=512))
    made.write("proc/cpuinfo", "flags\t\t: fpu svm\n")
    made.write("sys/module/kvm_amd/parameters/nested", "1\n")
    return made


def probes(host: FakeHost, kvm: KvmAnswer = WORKS, cores: int = 8) -> dict[str, Finding]:
    return {one.item: one for one in probe_hardware(host.devices, host, kvm, cores)}


def test_a_host_that_has_everything(host: FakeHost) -> None:
    found = probes(host)
    assert [item for item, one in found.items() if not one.ok] == []
    assert list(found) == ["KVM", "vhost", "cores", "nesting", "huge pages", "IOMMU", "virtual functions"]
    assert found["huge pages"].says == "512 of 512 are free, 2 MiB each"
    assert found["IOMMU"].says == "4 groups"
    assert found["virtual functions"].says == "enp1s0 has 4 of at most 8, 0 of them handed to machines"


def test_a_host_that_has_nothing(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    for name in ("vhost-net", "kvm"):
        (tmp_path / "dev" / name).unlink()
    found = probes(host, KvmAnswer(False, "there is no /dev/kvm"), 2)
    assert [item for item, one in found.items() if one.ok] == []
    assert all(one.next for one in found.values())
    assert found["KVM"].next == "switch on VT-x or AMD-V in the firmware, then modprobe kvm_intel or kvm_amd"
    assert found["virtual functions"].says == "no NIC has SR-IOV"


def test_each_gap_has_its_next_step(host: FakeHost) -> None:
    host.write("proc/meminfo", MEMINFO.format(total=0))
    host.write("sys/module/kvm_amd/parameters/nested", "0\n")
    host.write("proc/cpuinfo", "flags\t\t: fpu svm hypervisor\n")
    host.bind(VFS[0], "vfio-pci")
    host.nic("enp1s0", state="down")
    found = probes(host)
    assert found["huge pages"].next.startswith("sysctl vm.nr_hugepages=")
    assert found["nesting"].says == "this host is a virtual machine itself; machines here cannot run KVM themselves"
    assert found["nesting"].next == "modprobe -r kvm_amd; modprobe kvm_amd nested=1"
    assert found["virtual functions"].says == "enp1s0 has 4 of at most 8, 1 of them handed to machines, and is down"
    for name in ("proc/meminfo", "proc/cpuinfo", "sys/class/net/enp1s0/device/sriov_totalvfs"):
        (host.root / name).write_text("no number\n")
    found = probes(host)
    assert (found["huge pages"].ok, found["virtual functions"].ok) == (False, False)


@pytest.mark.parametrize(
    ("why", "hint"),
    [
        ("no permission to open /dev/kvm (group kvm)", "usermod --append --groups kvm"),
        ("there is no kernel to try KVM with yet", "make boxes"),
        ("a kernel under KVM stops half-way, after: x", "work on the virtual testbed; "),
    ],
)
def test_the_next_step_depends_on_why_kvm_does_not_work(host: FakeHost, why: str, hint: str) -> None:
    assert probes(host, KvmAnswer(False, why))["KVM"].next.startswith(hint)


# ---- doctor -------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "checkout"
    (root / "labs").mkdir(parents=True)
    shutil.copy(ROOT / "topology.yml", root)
    monkeypatch.chdir(root)
    monkeypatch.delenv("FWLAB_LINK", raising=False)
    monkeypatch.setattr(doctor, "Devices", lambda: host.devices)
    monkeypatch.setattr(doctor, "Ip", lambda: host)
    monkeypatch.setattr(doctor, "kvm_works", lambda **_: WORKS)
    monkeypatch.setattr("fwlab.testbed.host_file.Devices", lambda: host.devices)
    monkeypatch.setattr("fwlab.testbed.host_file.Ip", lambda: host)
    return root


def findings() -> dict[str, dict]:
    document = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)
    return {one["item"]: one for one in document["findings"]}


def test_doctor_prints_the_hardware_and_does_not_require_it(checkout: Path, host: FakeHost) -> None:
    (host.root / "dev/vhost-net").unlink()
    found = findings()
    assert found["vhost"] == {
        "item": "vhost",
        "ok": False,
        "says": "there is no /dev/vhost-net: links virtio and macvtap are slow",
        "next": "modprobe vhost_net",
        "required": False,
    }
    assert found["boxes"]["required"]
    lines = CliRunner().invoke(app, ["doctor"]).output.splitlines()
    at = lines.index("without vhost: there is no /dev/vhost-net: links virtio and macvtap are slow")
    assert lines[at + 1] == "        next: modprobe vhost_net"


def test_doctor_requires_what_the_chosen_links_need(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name: one["required"] for name, one in findings().items() if name.startswith("link ")} == {
        "link socket": True,
        **dict.fromkeys(("link virtio", "link macvtap", "link sriov"), False),
    }
    monkeypatch.setenv("FWLAB_LINK", "virtio")
    monkeypatch.setenv("FWLAB_LIBVIRT_URI", "qemu:///session")
    found = findings()
    assert (found["link virtio"]["required"], found["link virtio"]["ok"]) == (True, False)
    assert not found["link socket"]["required"]
    (checkout / "host.yml").write_text("macvtap: { generator-dut: { nick: dummy } }\n")
    wrong = findings()["host.yml"]
    assert (wrong["ok"], wrong["next"]) == (False, "fix host.yml, then `fwlab doctor`")
    assert "host.yml: macvtap.generator-dut.nick: there is no such field" in wrong["says"]


def test_a_drafted_host_file_is_valid_and_not_overwritten(checkout: Path, host: FakeHost) -> None:
    assert CliRunner().invoke(app, ["doctor", "--draft-host-file"]).exit_code == 0
    file = load_host_file(Project(checkout), TOPOLOGY)
    ends = [address for link in file.sriov.values() for address in link.ends.values()]
    assert ends == VFS
    assert [link.vlan for link in file.sriov.values()] == [101, 102]
    assert [link.nic for link in file.macvtap.values()] == ["dummy", "dummy"]
    assert findings()["host.yml"]["ok"]
    before = (checkout / "host.yml").read_text()
    assert isinstance(CliRunner().invoke(app, ["doctor", "--draft-host-file"]).exception, BadInput)
    assert (checkout / "host.yml").read_text() == before


def test_nics_that_cannot_set_vlans_carry_one_link_each(host: FakeHost) -> None:
    host.lose_vfs()
    host.virtio_sriov()
    text = draft(TOPOLOGY, host.devices, host)
    file = validated(yaml.safe_load(text), "host.yml", HostFile)
    assert [list(link.ends.values()) for link in file.sriov.values()] == list(VIRTIO_VFS.values())
    assert [(link.vlan, link.spoof_check, link.trust) for link in file.sriov.values()] == [(0, False, False)] * 2
    assert "# The driver of these NICs cannot administer VFs: no VLAN" in text
    host.nic("enp3s0", state="down")
    text = draft(TOPOLOGY, host.devices, host)
    assert "# sriov: enp2s0 cannot set VLANs for its VFs; 2 such NICs are needed, one for each link" in text
    assert validated(yaml.safe_load(text), "host.yml", HostFile).sriov == {}


def test_doctor_says_which_nic_cannot_administer_its_vfs(host: FakeHost) -> None:
    host.virtio_sriov()
    said = probes(host)["virtual functions"].says.split("enp")
    assert "administer" not in said[1]
    assert said[2].startswith("2s0 has 2 of at most 2, 0 of them handed to machines; its driver cannot administer VFs:")
    host.fail_at = len(host.calls) + 1
    assert "administer" not in probes(host)["virtual functions"].says.split("enp")[2], "`ip` does not answer"
    host.write("sys/bus/pci/devices/0000:02:00.0/sriov_numvfs", "0\n")
    without = probes(host)["virtual functions"]
    assert "administer" not in without.says.split("enp")[2]
    assert without.next == "echo 2 >/sys/bus/pci/devices/0000:02:00.0/sriov_numvfs"
    assert host.devices.vfs_command("enp1s0") == "echo 4 >/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda host: host.lose_vfs(),
            "# sriov: enp1s0 has 0 free VFs in IOMMU groups (4 in all, at most 8); 4 are needed",
        ),
        (lambda host: host.nic("enp1s0", state="down"), "# sriov: enp1s0 is down"),
        (
            lambda host: host.own_addresses.update(enp1s0=["192.0.2.7"]),
            "# sriov: enp1s0 has the host's address 192.0.2.7/24",
        ),
        (lambda host: host.bind(VFS[3], "vfio-pci"), "# sriov: enp1s0 has 3 free VFs"),
    ],
    ids=["no VFs", "down", "address", "taken"],
)
def test_a_draft_names_only_what_nothing_else_uses(host: FakeHost, change, reason: str) -> None:
    change(host)
    text = draft(TOPOLOGY, host.devices, host)
    assert reason in text
    assert validated(yaml.safe_load(text), "host.yml", HostFile).sriov == {}
