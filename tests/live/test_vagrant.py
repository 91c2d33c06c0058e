# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's machines as Vagrant makes them: names, addresses, the way through the DUT, what is left after.

Its own checkout and its own ports, so that it neither meets nor ends a lab that is in use.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fwlab.words.topology import ROLES, Topology

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab03-ipset"
TOPOLOGY = Topology.model_validate(yaml.safe_load((ROOT / "topology.yml").read_text()))
OFFSET = "4000"


class Lab:
    """One lab in a checkout of its own."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.environment = {**os.environ, "FWLAB_PORT_OFFSET": OFFSET, "VAGRANT_NO_COLOR": "1"}

    def vagrant(self, *words: str, timeout: float = 1200) -> str:
        done = subprocess.run(
            ["vagrant", *words],
            cwd=self.checkout,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def run(self, role: str, command: str) -> str:
        return self.vagrant("ssh", LAB if role == "dut" else f"{LAB}-{role}", "--no-tty", "-c", command)

    def states(self) -> dict[str, str]:
        lines = self.vagrant("status", LAB, "--machine-readable").splitlines()
        fields = [line.split(",") for line in lines]
        return {field[1]: field[3] for field in fields if field[2] == "state"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if not (ROOT / ".fwlab" / "images.json").exists():
        pytest.fail("boxes are not built: run `make boxes`")
    checkout = tmp_path_factory.mktemp("vagrant") / "checkout"
    (checkout / "labs" / LAB).mkdir(parents=True)
    (checkout / ".fwlab").mkdir()
    shutil.copy(ROOT / ".fwlab" / "images.json", checkout / ".fwlab")
    for name in ("Vagrantfile", "topology.yml"):
        shutil.copy(ROOT / name, checkout)
    shutil.copytree(ROOT / "provision", checkout / "provision")
    lab = Lab(checkout)
    try:
        lab.vagrant("up", LAB)
        yield lab
    finally:
        lab.vagrant("destroy", "-f", LAB)
        command = ["virsh", "--quiet", "list", "--all", "--name"]
        left = subprocess.run(command, capture_output=True, text=True).stdout
        assert not any(name.startswith(domain_prefix(lab)) for name in left.split())


def domain_prefix(lab: Lab) -> str:
    script = "require './provision/vagrant/lab_machines'; print FirewallLab::Project.new(Dir.pwd).prefix"
    return subprocess.run(["ruby", "-e", script], cwd=lab.checkout, capture_output=True, text=True).stdout


def test_lab_name_stands_for_its_three_machines(lab: Lab) -> None:
    assert lab.states() == {LAB: "running", f"{LAB}-generator": "running", f"{LAB}-sink": "running"}


def test_ssh_of_the_lab_is_its_dut(lab: Lab) -> None:
    assert lab.run("dut", "hostname").strip() == "dut"


@pytest.mark.parametrize("role", ROLES)
def test_links_have_their_addresses_and_permanent_neighbours(lab: Lab, role: str) -> None:
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


def test_frames_cross_the_dut(lab: Lab) -> None:
    assert " 0% packet loss" in lab.run("generator", "ping -c 3 -W 20 sink")


def test_nothing_on_the_dut_listens_to_every_packet(lab: Lab) -> None:
    """An open packet socket has each packet time-stamped, and costs what the labs measure."""
    sockets = lab.run("dut", "sudo cat /proc/net/packet").strip().splitlines()
    assert len(sockets) == 1, sockets


def test_halt_and_up_again(lab: Lab) -> None:
    lab.vagrant("halt", LAB)
    assert set(lab.states().values()) == {"shutoff"}
    lab.vagrant("up", LAB)
    assert lab.run("dut", "hostname").strip() == "dut"
