# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's machines as Vagrant creates them: names, addresses, the path through the DUT."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.host.environment import libvirt_uri
from fwlab.images.boxes import LINUX_IMAGES
from fwlab.model.topology import ROLES
from fwlab.testbed.machine_record import from_command_line, machines_made
from fwlab.testbed.qemu_process import qemu_of

from .conftest import LAB, TOPOLOGY, Checkout, ssh_port

pytestmark = pytest.mark.live


def test_lab_name_stands_for_its_three_machines(lab: Checkout) -> None:
    assert lab.states() == {LAB: "running", f"{LAB}-generator": "running", f"{LAB}-sink": "running"}


def test_ssh_of_the_lab_is_its_dut(lab: Checkout) -> None:
    assert lab.vagrant("ssh", LAB, "--no-tty", "-c", "hostname").strip() == "dut"


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
    lab.run("sink", "sudo nft flush ruleset")  # a session leaves its counters there, and they drop what they count
    assert " 0% packet loss" in lab.run("generator", "ping -c 3 -W 20 sink")


def test_the_dut_has_no_packet_socket(lab: Checkout) -> None:
    """An open packet socket makes the kernel timestamp every packet, which would distort the figures."""
    sockets = lab.run("dut", "sudo cat /proc/net/packet").strip().splitlines()
    assert len(sockets) == 1, sockets


def test_the_duts_kernel_is_configured_for_stable_figures(lab: Checkout) -> None:
    """Without these settings figures vary between boots or over time (guides/method.md)."""
    words = lab.run("dut", "cat /proc/cmdline").split()
    assert {"nokaslr", "norandmaps", "slub_min_order=3", "transparent_hugepage=never"} <= set(words)
    assert lab.run("dut", "sudo cat /sys/kernel/slab/skbuff_head_cache/objs_per_slab").strip() == "128"
    assert lab.run("dut", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource").strip() == "tsc"


def test_libvirt_caches_qemus_capabilities(lab: Checkout) -> None:
    """With an outdated cache it probes QEMU in every call, and `vagrant up` makes many calls."""
    uri = libvirt_uri()
    learnt = (Path("/var/cache") if uri.endswith("/system") else Path.home() / ".cache") / "libvirt/qemu/capabilities"
    if not os.access(learnt, os.R_OK | os.X_OK):
        pytest.skip(f"{learnt} is not readable: the cache belongs to another user")

    def when() -> dict[str, int]:
        subprocess.run(["virsh", "--quiet", "--connect", uri, "domcapabilities"], check=True, capture_output=True)
        return {path.name: path.stat().st_mtime_ns for path in learnt.glob("*.xml")}

    first = when()
    assert first
    assert when() == first


def test_the_machine_record_matches_the_machines(lab: Checkout) -> None:
    made = machines_made(Project(lab.top), TOPOLOGY, -1, LAB)  # -1: no running machine, so only the record is read
    seen = qemu_of(TOPOLOGY.ports.address, ssh_port("dut"))
    line = Path(f"/proc/{seen}/cmdline").read_text().split("\0")
    assert made == replace(from_command_line(line), boxes=made.boxes)
    assert (made.testbed, made.link) == ("virtual", "socket")
    images = json.loads((lab.top / ".fwlab" / "images.json").read_text())
    assert set(made.boxes.values()) == {images[image]["box"] for image in LINUX_IMAGES}


def test_machines_of_the_other_testbed_are_refused(lab: Checkout) -> None:
    done = lab.fwlab("run", LAB, "raw-drop", "--testbed", "real")
    assert done.returncode == 3
    assert f"the machines of {LAB} were made for the virtual testbed; you asked for real" in done.stderr


def test_a_snapshot_of_the_lab_is_of_its_three_machines(lab: Checkout) -> None:
    lab.vagrant("snapshot", "save", LAB, "before")
    for role in ROLES:
        lab.run(role, "touch after")
    lab.vagrant("snapshot", "restore", LAB, "before")
    lab.vagrant("snapshot", "delete", LAB, "before")
    assert [lab.run(role, "hostname; ls after 2>/dev/null || true").split() for role in ROLES] == [
        [role] for role in ROLES
    ]


def test_a_suspended_lab_goes_on(lab: Checkout) -> None:
    lab.vagrant("suspend", LAB)
    assert set(lab.states().values()) == {"paused"}
    lab.vagrant("resume", LAB)
    assert set(lab.states().values()) == {"running"}
    assert " 0% packet loss" in lab.run("generator", "ping -c 3 -W 20 sink")


@pytest.mark.thorough
def test_halt_powers_off_a_guest_that_hangs_and_up_boots_it(lab: Checkout) -> None:
    """After a panic the guest answers neither SSH nor ACPI. The sink boots faster than all three machines."""
    name = f"{LAB}-sink"
    with (lab.top / "Vagrantfile").open("a") as vagrantfile:  # Vagrant's own patience is a minute
        vagrantfile.write('Vagrant.configure("2") { |config| config.vm.graceful_halt_timeout = 10 }\n')
    # Delayed, so that the SSH command can end: a connection to a dead guest would wait for hours.
    panic = "(sleep 2; echo c >/proc/sysrq-trigger) >/dev/null 2>&1 </dev/null &"
    lab.run("sink", f"sudo sh -c 'sysctl -q kernel.panic=0; {panic}'")
    time.sleep(5)
    said = lab.vagrant("halt", name)
    assert "does not shut down within 10 s: switching it off" in said
    assert ".rb:" not in said, "Ruby backtrace"
    assert lab.states() == {LAB: "running", f"{LAB}-generator": "running", name: "shutoff"}
    lab.vagrant("up", name)
    assert lab.run("sink", "hostname").strip() == "sink"
