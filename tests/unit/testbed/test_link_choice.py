# SPDX-License-Identifier: GPL-2.0-or-later
"""The links of machines: what was recorded, and what their QEMU shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.machines.record import describe
from fwlab.model.errors import CannotMeasure
from fwlab.testbed import machine_record
from fwlab.testbed.link_kinds import as_qemu_shows, link_of
from fwlab.testbed.machine_record import from_command_line, machines_made
from tests.fakes.machines_checkout import LAB, TOPOLOGY, made, settings, small_checkout

NAMES = list(TOPOLOGY.links)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


def test_a_tap_device_may_carry_two_kinds() -> None:
    assert [link_of(word) for word in ("dgram", "tap", "vfio-pci")] == ["socket", "tap", "sriov"]
    assert [as_qemu_shows(kinds) for kinds in ("virtio", "macvtap", "macvtap+virtio")] == ["tap", "tap", "tap"]
    assert as_qemu_shows("socket+virtio") == "socket+tap"


NETDEVS = {
    "virtio": ["-netdev", '{"type":"tap","fd":"25","vhost":true,"vhostfd":"27","id":"hostua-net-0"}'],
    "macvtap": ["-netdev", "tap,fds=25:26,vhost=on,vhostfds=27:28,id=hostua-net-0"],
    "sriov": ["-device", '{"driver":"vfio-pci","host":"0000:01:10.2","id":"hostdev0"}'],
    "socket": ["-netdev", '{"type":"dgram","id":"hostua-net-0"}'],
}


@pytest.mark.parametrize("kind", NETDEVS)
@pytest.mark.parametrize("running", NETDEVS)
def test_a_record_is_believed_unless_qemu_shows_other_links(
    checkout: Path, kind: str, running: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=2", *NETDEVS[running]]
    monkeypatch.setattr(machine_record, "_running", lambda *_: from_command_line(line))
    made(checkout, LAB, dict.fromkeys(NAMES, kind))
    if {kind, running} <= {"virtio", "macvtap"} or kind == running:
        assert machines_made(Project(checkout), TOPOLOGY, 3, LAB).link == kind
    else:
        with pytest.raises(CannotMeasure, match=f"link {kind}, the DUT's QEMU"):
            machines_made(Project(checkout), TOPOLOGY, 3, LAB)


def test_the_record_names_the_kind_of_each_link(checkout: Path) -> None:
    xml = f"""<domain type='kvm'><name>x</name><devices>
      <interface type='bridge'><mac address='{TOPOLOGY.end("dut-sink", "dut").mac}'/></interface>
      <hostdev mode='subsystem' type='pci' managed='yes'><source/></hostdev></devices></domain>"""
    with settings(checkout) as plan:
        record = describe(plan.machine(LAB), xml, "box")
    assert record["links"] == {"generator-dut": "sriov", "dut-sink": "virtio"}
    assert record["link"] == "sriov+virtio"


def test_a_hub_is_a_socket_link(checkout: Path) -> None:
    words = ["-netdev", "socket,id=generator-dut,udp=127.0.0.1:17,localaddr=127.0.0.1:7", "-icount", "shift=2"]
    arguments = "".join(f"<q:arg value='{word}'/>" for word in words)
    xml = "<domain type='qemu' xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><name>x</name><devices/>"
    with settings(checkout) as plan:
        record = describe(plan.machine(LAB), f"{xml}<q:commandline>{arguments}</q:commandline></domain>", "box")
    assert (record["links"], record["icount_shift"]) == ({"generator-dut": "socket"}, 2)
