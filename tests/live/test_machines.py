# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's machines as Vagrant makes them: names, addresses, the way through the DUT."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fwlab.host.environment import libvirt_uri
from fwlab.host.project import Project
from fwlab.model.topology import ROLES
from fwlab.testbed.machine_record import from_command_line, machines_made
from fwlab.testbed.qemu_process import qemu_of

from .conftest import LAB, OFFSET, TOPOLOGY, Checkout

pytestmark = pytest.mark.live


def test_lab_name_stands_for_its_three_machines(lab: Checkout) -> None:
    assert lab.states() == {LAB: "running", f"{LAB}-generator": "running", f"{LAB}-sink": "running"}


def test_ssh_of_the_lab_is_its_dut(lab: Checkout) -> None:
    assert lab.run("dut", "hostname").strip() == "dut"


@pytest.mark.parametrize("role", ROLES)
def test_links_have_their_addresses_and_permanent_neighbours(lab: Checkout, role: str) -> None:
    shown = json.loads(lab.run(role, "ip -json address"))
    held = {
        (device["ifname"], f"{address['local']}/{address['prefixlen']}")
        for device in shown
        for address in device["addr_info"]
    }
    neighbours = json.loads(lab.run(role, "ip -json neigh"))
    permanent = {(item["dev"], item.get("lladdr")) for item in neighbours if item["state"] == ["PERMANENT"]}
    for link in (link for link in TOPOLOGY.links.values() if role in link.ends):
        near = link.ends[role]
        far = next(end for other, end in link.ends.items() if other != role)
        assert {(near.dev, near.ipv4), (near.dev, near.ipv6)} <= held
        assert (near.dev, far.mac) in permanent


def test_frames_cross_the_dut(lab: Checkout) -> None:
    assert " 0% packet loss" in lab.run("generator", "ping -c 3 -W 20 sink")


def test_nothing_on_the_dut_listens_to_every_packet(lab: Checkout) -> None:
    """An open packet socket has each packet time-stamped, and costs what the labs measure."""
    sockets = lab.run("dut", "sudo cat /proc/net/packet").strip().splitlines()
    assert len(sockets) == 1, sockets


def test_the_duts_kernel_keeps_still(lab: Checkout) -> None:
    """Settings without which figures differ from boot to boot, or from minute to minute (guides/method.md)."""
    words = lab.run("dut", "cat /proc/cmdline").split()
    assert {"nokaslr", "slub_min_order=3", "transparent_hugepage=never"} <= set(words)
    assert lab.run("dut", "sudo cat /sys/kernel/slab/skbuff_head_cache/objs_per_slab").strip() == "128"
    assert lab.run("dut", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource").strip() == "tsc"


def test_libvirt_asks_qemu_once_what_it_can_do(lab: Checkout) -> None:
    """Where it takes what it learnt for outdated it asks at every call, and `vagrant up` makes many of them."""
    uri = libvirt_uri()
    learnt = (Path("/var/cache") if uri.endswith("/system") else Path.home() / ".cache") / "libvirt/qemu/capabilities"
    if not os.access(learnt, os.R_OK | os.X_OK):
        pytest.skip(f"{learnt} is not to be read: libvirt's notes are another user's")

    def when() -> dict[str, int]:
        subprocess.run(["virsh", "--quiet", "--connect", uri, "domcapabilities"], check=True, capture_output=True)
        return {path.name: path.stat().st_mtime_ns for path in learnt.glob("*.xml")}

    first = when()
    assert first
    assert when() == first


def test_what_was_made_is_written_down(lab: Checkout) -> None:
    made = machines_made(Project(lab.top), TOPOLOGY, -1, LAB)  # no such lab's QEMU is seen: the record alone
    seen = qemu_of(TOPOLOGY.ports.address, TOPOLOGY.ssh_port(3, "dut") + OFFSET)
    line = Path(f"/proc/{seen}/cmdline").read_text().split("\0")
    assert made == replace(from_command_line(line), boxes=made.boxes)
    assert (made.testbed, made.link) == ("virtual", "socket")
    images = json.loads((lab.top / ".fwlab" / "images.json").read_text())
    assert set(made.boxes.values()) == {image["box"] for image in images.values()}


def test_machines_of_the_other_testbed_are_refused(lab: Checkout) -> None:
    done = lab.fwlab("run", LAB, "raw-drop", "--testbed", "real")
    assert done.returncode == 3
    assert f"the machines of {LAB} were made for the virtual testbed; you asked for real" in done.stderr


def test_a_guest_that_hangs_is_switched_off(lab: Checkout) -> None:
    """After a panic it answers neither SSH nor the power button."""
    # A moment later, so that the command ends: a connection to a guest that has died waits for hours.
    panic = "(sleep 2; echo c >/proc/sysrq-trigger) >/dev/null 2>&1 </dev/null &"
    lab.run("dut", f"sudo sh -c 'sysctl -q kernel.panic=0; {panic}'")
    time.sleep(5)
    said = lab.vagrant("halt", LAB)
    assert "switching it off" in said
    assert ".rb:" not in said, "a backtrace"
    assert set(lab.states().values()) == {"shutoff"}
    lab.vagrant("up", LAB)
    assert lab.run("dut", "hostname").strip() == "dut"


def test_halt_and_up_again(lab: Checkout) -> None:
    lab.vagrant("halt", LAB)
    assert set(lab.states().values()) == {"shutoff"}
    lab.vagrant("up", LAB)
    assert lab.run("dut", "hostname").strip() == "dut"
