# SPDX-License-Identifier: GPL-2.0-or-later
"""What is checked and made before machines start: boxes, ports, links, what a killed Vagrant left, and seeds."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import yaml

from fwlab.host.memory import Room
from fwlab.machines.prepare import prepare, reject_taken_ports, restore_links
from fwlab.machines.seed import Seed, make_key
from fwlab.model.errors import BadInput, CannotMeasure
from tests.fakes.machines_checkout import LAB, MACHINES, TOPOLOGY, build, made, seed_file, settings, small_checkout
from tests.fakes.programs import needs

KEY = "ssh-ed25519 AAAA fwlab"


class Prepared:
    """A checkout with boxes and a fake libvirt. `defined`, `active`: its machines; `did`: what it was asked to do."""

    def __init__(self, root: Path) -> None:
        self.root = small_checkout(root)
        build(root, "generator", "dut-linux", "sink")
        (root / ".fwlab/ssh").mkdir()
        for name in ("id_ed25519", "id_ed25519.pub"):
            (root / ".fwlab/ssh" / name).write_text(KEY + "\n")
        self.defined: list[str] = []
        self.active: list[str] = []
        programs = root / "programs"
        programs.mkdir()
        virsh = f"""#!/bin/sh
        case "$*" in *--all*) cat {root}/defined;; *list*) cat {root}/active;; *) echo "$*" >>{root}/did;; esac
        """
        (programs / "virsh").write_text(virsh)
        (programs / "virsh").chmod(0o755)

    def prepare(self, *names: str, restart: bool = False, **extra: str) -> list[str]:
        """The names of the seeds that were written."""
        for name in ("defined", "active"):
            (self.root / name).write_text("\n".join(getattr(self, name)))
        path = f"{self.root / 'programs'}:{os.environ['PATH']}"
        with settings(self.root, PATH=path, **extra) as plan:
            self.prefix = plan.prefix
            prepare(plan, names or MACHINES.values(), restart=restart)
            folder = plan.machine(LAB).seed.parent
        return sorted(seed.stem for seed in folder.glob("*.iso"))

    def known_to_vagrant(self, name: str) -> None:
        path = self.root / ".vagrant/machines" / name / "libvirt/id"
        path.parent.mkdir(parents=True)
        path.write_text("0")

    @property
    def did(self) -> list[str]:
        path = self.root / "did"
        return [line.partition("qemu:///")[2] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


@pytest.fixture
def here(tmp_path: Path) -> Prepared:
    return Prepared(tmp_path / "checkout")


# ---- machines ----------------------------------------------------------------------------------------------------

makes_cds = needs("xorriso", "genisoimage")


@makes_cds
@pytest.mark.parametrize("restart", [False, True])
def test_a_machine_that_runs_needs_a_seed_only_if_it_restarts(here: Prepared, restart: bool) -> None:
    here.known_to_vagrant(LAB)
    build(here.root)  # nor does it need its box
    with settings(here.root) as plan:
        here.active = here.defined = [f"{plan.prefix}{LAB}"]
    assert here.prepare(LAB, restart=restart) == ([LAB] if restart else [])


def test_missing_boxes_are_named(here: Prepared) -> None:
    build(here.root, "dut-linux")
    with pytest.raises(BadInput, match=r"boxes are not built \(generator, sink\)"):
        here.prepare()
    build(here.root)
    with pytest.raises(BadInput, match=r"its DUT runs linux, and the box dut-linux is not built"):
        here.prepare(LAB)


@makes_cds
def test_a_new_machine_needs_the_box_of_these_files(here: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that exists keeps the disk that it has."""
    asked: list[list[str]] = []
    monkeypatch.setattr("fwlab.images.boxes.outdated", lambda _root, _boxes, images: asked.append(list(images)) or [])
    here.known_to_vagrant(LAB)
    here.prepare()
    assert asked == [["generator", "sink"]]
    monkeypatch.setattr("fwlab.images.boxes.outdated", lambda *_: ["sink"])
    with pytest.raises(BadInput, match="the boxes sink were built from other files") as error:
        here.prepare()
    assert error.value.hint == f"packer/build --lab {LAB}"


@makes_cds
def test_a_new_machine_needs_a_box_that_vagrant_has(here: Prepared) -> None:
    """Another checkout removes old boxes; one that is used here becomes the newest of its image."""
    cached = here.root / "cache/sink.box"
    cached.parent.mkdir()
    cached.touch()
    os.utime(cached, (0, 0))
    here.prepare()
    assert cached.stat().st_mtime > 0
    (here.root / "vagrant-home/boxes/fwlab-sink-0").rmdir()
    with pytest.raises(BadInput, match="Vagrant does not have the boxes fwlab-sink-0") as error:
        here.prepare()
    assert error.value.hint == f"packer/build --lab {LAB}"
    for machine in MACHINES.values():
        here.known_to_vagrant(machine)
    here.prepare()


@makes_cds
def test_only_machines_that_start_need_memory(here: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.host.memory.memory_left", lambda: Room(1200, 2048))
    for machine in MACHINES.values():
        here.known_to_vagrant(machine)
    with pytest.raises(CannotMeasure, match="3 machines need 1500 MiB of memory; 1200 MiB of the 2048"):
        here.prepare()
    with settings(here.root) as plan:
        here.active = here.defined = [f"{plan.prefix}{LAB}"]
    assert here.prepare() == sorted(set(MACHINES.values()) - {LAB})


@makes_cds
def test_what_a_killed_vagrant_left_is_removed(here: Prepared) -> None:
    """Vagrant does not know it any more. Machines of other checkouts, and those that Vagrant knows, stay."""
    here.known_to_vagrant(LAB)
    with settings(here.root) as plan:
        here.defined = [f"{plan.prefix}{LAB}", f"{plan.prefix}{LAB}-sink", f"fwlab-00000000-{LAB}-generator"]
    here.active = here.defined[1:2]
    here.prepare()
    name = f"{here.prefix}{LAB}-sink"
    kind = "session" if os.getuid() else "system"
    assert here.did == [f"{kind} destroy {name}", f"{kind} undefine {name} --remove-all-storage"]


def test_other_choices_than_those_of_the_machines_are_refused(here: Prepared) -> None:
    made(here.root, LAB, {"generator-dut": "socket", "dut-sink": "socket"})
    with pytest.raises(CannotMeasure, match="FWLAB_LINK asks for virtio"):
        here.prepare(FWLAB_LINK="virtio")


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_a_port_in_use_is_named(checkout: Path, kind: str) -> None:
    with settings(checkout) as plan:
        dut = plan.machine(LAB)
        port = next(port for protocol, port, _ in dut.ports if protocol == kind)
        with socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as taken:
            taken.bind((TOPOLOGY.ports.address, port))
            if kind == "tcp":
                taken.listen()
            with pytest.raises(BadInput) as error:
                reject_taken_ports(dut)
        reject_taken_ports(dut)
    assert f"{kind} port 127.0.0.1:{port} (" in error.value.message
    assert f"of {LAB}) is taken" in error.value.message
    assert "FWLAB_PORT_OFFSET=100" in error.value.hint


@makes_cds
def test_the_host_is_changed_only_where_a_link_needs_it(here: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, dict[str, str]]] = []
    module = "fwlab.testbed.host_links.prepare.HostLinks"
    monkeypatch.setattr(f"{module}.prepare", lambda _self, lab, kinds: calls.append((lab, kinds)))
    assert here.prepare() == sorted(MACHINES.values()), "each machine gets its seed"
    assert (calls, here.did) == ([], [])
    here.prepare(FWLAB_LINK="virtio")
    assert calls == [(LAB, {"generator-dut": "virtio", "dut-sink": "virtio"})]


def test_only_what_was_changed_is_restored(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("fwlab.testbed.host_links.prepare.HostLinks.restore", lambda _self, lab: calls.append(lab))
    monkeypatch.setattr("fwlab.machines.prepare.HOST_CHANGES", tmp_path)
    with settings(checkout) as plan:
        restore_links(plan, LAB)
        assert calls == []
        (tmp_path / f"{plan.key}-{LAB}.json").write_text("")
        restore_links(plan, LAB)
    assert calls == [LAB]


# ---- seeds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "machine"), MACHINES.items())
def test_a_seed_is_a_cloud_config_with_every_link(checkout: Path, role: str, machine: str) -> None:
    text = seed_file(checkout, machine, "user-data")
    assert text.startswith("#cloud-config\n")
    data = yaml.safe_load(text)
    assert data["users"][0]["ssh_authorized_keys"] == [KEY]
    files = {entry["path"]: entry["content"] for entry in data["write_files"]}
    for link in (link for link in TOPOLOGY.links.values() if role in link.ends):
        near = link.ends[role]
        far_role = next(other for other in link.ends if other != role)
        network = files[f"/etc/systemd/network/10-fwlab-{near.dev}.network"]
        lines = network.splitlines()
        assert f"MACAddress={near.mac}" in lines
        assert {f"Address={near.ipv4}", f"Address={near.ipv6}", "DHCP=no", "LLDP=no"} <= set(lines)
        assert lines.count(f"LinkLayerAddress={link.ends[far_role].mac}") == 2
        assert {f"Destination={prefix}" for prefix in link.behind[far_role]} <= set(lines)
    others = [path for path in files if path.endswith(".network") and "DHCP=no" not in files[path].splitlines()]
    assert others == []
    assert yaml.safe_load(seed_file(checkout, machine, "network-config"))["config"] == "disabled"
    assert {"generator", "dut", "sink"} <= set(files["/etc/hosts"].split())


def test_a_seed_changes_its_instance_with_its_content(checkout: Path) -> None:
    before, again = (yaml.safe_load(seed_file(checkout, LAB, "meta-data")) for _ in range(2))
    topology = checkout / "topology.yml"
    topology.write_text(topology.read_text().replace("mtu: 1500", "mtu: 1400"))
    after = yaml.safe_load(seed_file(checkout, LAB, "meta-data"))
    assert before == again
    assert before["instance-id"] != after["instance-id"]


@makes_cds
def test_a_seed_is_a_readable_cd(checkout: Path) -> None:
    with settings(checkout) as plan:
        machine = plan.machine(LAB)
        for _ in range(2):
            Seed(machine, KEY).write()
    seed = next((checkout / "cache/seeds").glob(f"*/{LAB}.iso"))
    assert b"CD001" in seed.read_bytes()[32768:32780]
    assert b"cidata" in seed.read_bytes()[32768:34816]
    assert seed.stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in seed.parent.iterdir()) == [f"{LAB}.iso", f"{LAB}.sha256"]


@needs("ssh-keygen")
def test_the_key_is_made_once(checkout: Path) -> None:
    with settings(checkout) as plan:
        make_key(plan)
        first = plan.private_key.read_text()
        make_key(plan)
        assert plan.private_key.read_text() == first
        assert plan.private_key.parent.stat().st_mode & 0o077 == 0
