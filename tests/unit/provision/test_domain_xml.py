# SPDX-License-Identifier: GPL-2.0-or-later
"""The XML that Vagrant's libvirt provider gives to libvirt for each kind of link, and QEMU's arguments for it.

The provider's own code makes the XML, and libvirt's own makes the arguments; no machine starts.
"""

import json
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest
import yaml

from fwlab.testbed.hardware import checkout_key, device_name
from fwlab.testbed.machine_record import from_command_line
from tests import ROOT
from tests.checkout import TOPOLOGY
from tests.fakes.machines_checkout import small_checkout
from tests.fakes.programs import needs
from tests.fakes.vagrant_script import vagrant

LAB = "lab03-ipset"
GENERATOR_DUT, DUT_SINK = TOPOLOGY.end("generator-dut", "dut").mac, TOPOLOGY.end("dut-sink", "dut").mac
HOST_FILE = {
    "macvtap": {"generator-dut": {"nic": "dummy"}, "dut-sink": {"nic": "enp9s0"}},
    "sriov": {
        "generator-dut": {"ends": {"generator": "0000:01:10.0", "dut": "0000:01:10.2"}},
        "dut-sink": {"ends": {"dut": "0000:01:10.4", "sink": "0001:0a:1f.7"}},
    },
}
#: The DUT's NICs. FIRST and SECOND stand for the names that depend on the checkout.
INTERFACES = {
    "socket": """
        <interface type="udp"><alias name="ua-net-0"/>
          <source address="127.0.0.1" port="4530"><local address="127.0.0.1" port="4531"/></source>
          <mac address="MAC0"/><target dev="vnet0"/><model type="virtio"/><driver iommu="off"/></interface>
        <interface type="udp"><alias name="ua-net-1"/>
          <source address="127.0.0.1" port="4533"><local address="127.0.0.1" port="4532"/></source>
          <mac address="MAC1"/><target dev="vnet1"/><model type="virtio"/><driver iommu="off"/></interface>""",
    "virtio": """
        <interface type="bridge"><alias name="ua-net-0"/><mac address="MAC0"/>
          <source bridge="FIRST"/><model type="virtio"/><driver name="NAME" queues="1"/></interface>
        <interface type="bridge"><alias name="ua-net-1"/><mac address="MAC1"/>
          <source bridge="SECOND"/><model type="virtio"/><driver name="NAME" queues="1"/></interface>""",
    "macvtap": """
        <interface type="direct"><alias name="ua-net-0"/><mac address="MAC0"/>
          <source dev="FIRST" mode="bridge"/><model type="virtio"/><driver name="NAME" queues="1"/></interface>
        <interface type="direct"><alias name="ua-net-1"/><mac address="MAC1"/>
          <source dev="enp9s0" mode="bridge"/><model type="virtio"/><driver name="NAME" queues="1"/></interface>""",
    "sriov": """
        <hostdev mode="subsystem" type="pci" managed="yes">
          <source><address domain="0x0000" bus="0x01" slot="0x10" function="0x2"/></source></hostdev>
        <hostdev mode="subsystem" type="pci" managed="yes">
          <source><address domain="0x0000" bus="0x01" slot="0x10" function="0x4"/></source></hostdev>""",
}
#: What else libvirt writes into QEMU's arguments are file descriptors and places on the PCI bus.
SHOWN = ("type", "driver", "mac", "host")
#: The virtual testbed, with another QEMU for the DUT.
WITHOUT_KVM = {"FWLAB_LINK": "virtio", "FWLAB_DUT_QEMU": "/bin/sh"}
OFFLOADS = ["csum", "gso", *(f"guest_{one}" for one in ("csum", "tso4", "tso6", "ecn", "ufo"))]
OFFLOADS += [f"host_{one}" for one in ("tso4", "tso6", "ecn", "ufo")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = small_checkout(tmp_path_factory.mktemp("golden") / "checkout", LAB)
    (root / "host.yml").write_text(yaml.safe_dump(HOST_FILE))
    added = (ROOT / "tests/fakes/domain_xml.rb").read_text()
    (root / "Vagrantfile").write_text((ROOT / "Vagrantfile").read_text() + added)
    return root


@cache
def machines(checkout: Path, **environment: str) -> dict[str, dict]:
    """What the provider makes, by role. Cached, because Vagrant takes a second to start."""
    done = vagrant(checkout, "validate", **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("XML ")]
    return {machine["role"]: machine for machine in json.loads(line.removeprefix("XML "))}


def nics(machine: dict) -> list[str]:
    """The NICs of a machine in one form of XML: those that are attached, then PCI devices that are handed over."""
    handed = ET.fromstring(machine["domain"]).findall("devices/hostdev")
    found = [*machine["interfaces"], *(ET.tostring(one, encoding="unicode") for one in handed)]
    return [ET.canonicalize(one, strip_text=True) for one in found]


def golden(checkout: Path, kind: str, driver: str = "vhost") -> list[str]:
    key = checkout_key(checkout)
    names = {"FIRST": device_name(key, LAB, 0), "SECOND": device_name(key, LAB, 1), "NAME": driver}
    text = INTERFACES[kind]
    for name, value in {**names, "MAC0": GENERATOR_DUT, "MAC1": DUT_SINK}.items():
        text = text.replace(name, value)
    found = ET.fromstring(f"<x>{text}</x>")
    return [ET.canonicalize(ET.tostring(one, encoding="unicode"), strip_text=True) for one in found]


def qemu_words(machine: dict) -> list[str]:
    return [one.get("value") for one in ET.fromstring(machine["domain"]).iter() if one.tag.endswith("}arg")]


@needs("vagrant")
@pytest.mark.parametrize("kind", INTERFACES)
def test_the_xml_of_each_kind(checkout: Path, kind: str) -> None:
    made = machines(checkout, FWLAB_LINK=kind, FWLAB_TESTBED="real", FWLAB_ACCEL="kvm")
    assert nics(made["dut"]) == golden(checkout, kind)
    assert [len(nics(made[role])) for role in ("generator", "sink")] == [1, 1]
    words = qemu_words(made["dut"])
    offloads = [word for word in words if re.fullmatch(r"virtio-net-pci\.\w+=off", word)]
    wanted = OFFLOADS if kind in ("virtio", "macvtap") else []
    assert offloads == [f"virtio-net-pci.{name}=off" for name in wanted]
    if kind == "sriov":
        address = '<address bus="0x0a" domain="0x0001" function="0x7" slot="0x1f"></address>'
        assert address in nics(made["sink"])[0]


@needs("vagrant")
def test_without_kvm_qemu_itself_carries_the_frames(checkout: Path) -> None:
    """The virtual DUT notifies in its own thread (ioeventfd=off), which vhost cannot be told of."""
    made = machines(checkout, **WITHOUT_KVM)
    assert nics(made["dut"]) == golden(checkout, "virtio", "qemu")
    assert "virtio-net-pci.ioeventfd=off" in qemu_words(made["dut"])


@needs("vagrant")
def test_the_architecture_is_that_of_the_boxes_and_only_the_dut_has_another_qemu(checkout: Path) -> None:
    """libvirt would take the host's architecture, which an arm64 host has another of."""
    made = machines(checkout, **WITHOUT_KVM)
    domains = {role: ET.fromstring(machine["domain"]) for role, machine in made.items()}
    assert {domain.find("os/type").get("arch") for domain in domains.values()} == {"x86_64"}
    emulators = {role: domain.findtext("devices/emulator") for role, domain in domains.items()}
    assert emulators == {"dut": "/bin/sh", "generator": None, "sink": None}


@needs("vagrant")
def test_links_may_have_different_kinds(checkout: Path) -> None:
    topology = checkout / "topology.yml"
    text = topology.read_text()
    try:
        topology.write_text(text.replace("kind: socket", "kind: virtio", 1))
        made = machines.__wrapped__(checkout, FWLAB_TESTBED="real", FWLAB_ACCEL="kvm")  # of this topology alone
    finally:
        topology.write_text(text)
    assert nics(made["dut"]) == [golden(checkout, "virtio")[0], golden(checkout, "socket")[1]]
    assert nics(made["sink"])[0].startswith('<interface type="udp">')


@needs("vagrant")
@needs("virsh")
def test_qemus_arguments_for_each_kind(checkout: Path) -> None:
    """libvirt in a process of its own turns the XML into QEMU's arguments, by which a session knows the links again."""
    seen = {}
    with tempfile.TemporaryDirectory(prefix="fwlab-", dir="/tmp") as short:  # the names of sockets must be short
        for kind in ("virtio", "macvtap", "sriov"):
            made = machines(checkout, FWLAB_LINK=kind, FWLAB_TESTBED="real", FWLAB_ACCEL="kvm")
            line = arguments(made["dut"], Path(short))
            carriers = [word for word in line if re.match(r'\{"(type":"tap|driver":"(virtio-net|vfio)-pci)"', word)]
            seen[kind] = [{k: v for k, v in json.loads(word).items() if k in SHOWN} for word in carriers]
            assert from_command_line(line).link == {"virtio": "tap", "macvtap": "tap", "sriov": "sriov"}[kind]
    tap = [
        word
        for mac in (GENERATOR_DUT, DUT_SINK)
        for word in ({"type": "tap"}, {"driver": "virtio-net-pci", "mac": mac})
    ]
    assert seen["virtio"] == seen["macvtap"] == tap
    assert seen["sriov"] == [{"driver": "vfio-pci", "host": f"0000:01:10.{function}"} for function in (2, 4)]


def arguments(machine: dict, folder: Path) -> list[str]:
    """QEMU's arguments for the machine. Its type is emulated, because libvirt asks QEMU what the host can do."""
    domain = ET.fromstring(machine["domain"].replace("type='kvm'", "type='qemu'", 1))
    domain.remove(domain.find("cpu"))
    for name in ("uuid", "title", "description"):
        domain.remove(domain.find(name))
    devices = domain.find("devices")
    for disk in devices.findall("disk"):
        devices.remove(disk)
    for handed in devices.findall("hostdev"):
        ET.SubElement(handed, "driver", name="vfio")  # which libvirt chooses itself where the kernel has VFIO
    devices.extend(ET.fromstring(one) for one in machine["interfaces"])
    (folder / "domain.xml").write_text(ET.tostring(domain, encoding="unicode"))
    # As the caller, QEMU opens /dev/kvm if libvirt can. Where only one of them can, libvirt asks it again without end.
    (folder / "libvirt" / "etc").mkdir(parents=True, exist_ok=True)
    (folder / "libvirt" / "etc" / "qemu.conf").write_text(f'user = "+{os.getuid()}"\ngroup = "+{os.getgid()}"\n')
    uri = f"qemu:///embed?root={folder}/libvirt"
    argv = ["virsh", "--quiet", "--connect", uri, "domxml-to-native", "qemu-argv", "--xml", str(folder / "domain.xml")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return [word.strip("'") for word in done.stdout.split()]
