# SPDX-License-Identifier: GPL-2.0-or-later
"""The Vagrantfile and its helpers without a machine: what they define for each lab, and their error messages."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

from fwlab.host.environment import cache_directory, libvirt_uri
from fwlab.model.topology import Topology
from tests.offline.programs import needs

ROOT = Path(__file__).resolve().parents[2]
TOPOLOGY = Topology.model_validate(yaml.safe_load((ROOT / "topology.yml").read_text()))
#: A range of ports that no lab uses by default, so that these tests can run beside a lab.
OFFSET = 20000
MACHINES = {"generator": "lab03-ipset-generator", "dut": "lab03-ipset", "sink": "lab03-ipset-sink"}

needs_vagrant, needs_ruby = needs("vagrant"), needs("ruby")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


def small_checkout(root: Path) -> Path:
    """A checkout with two labs, its own Vagrant home, and no boxes."""
    for lab in ("lab03-ipset", "lab11-sriov"):
        (root / "labs" / lab).mkdir(parents=True)
    shutil.copy(ROOT / "topology.yml", root)
    shutil.copy(ROOT / "Vagrantfile", root)
    shutil.copytree(ROOT / "provision" / "vagrant", root / "provision" / "vagrant")
    shutil.copytree(ROOT / "provision" / "cloud-init", root / "provision" / "cloud-init")
    shutil.copytree(ROOT / "provision" / "host", root / "provision" / "host")
    return root


def environment(checkout: Path, **extra: str) -> dict[str, str]:
    drop = ("FWLAB_", "VAGRANT_", "LIBVIRT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    own = {
        "FWLAB_CACHE": str(checkout / "cache"),
        "FWLAB_PORT_OFFSET": str(OFFSET),
        "VAGRANT_HOME": str(checkout / "vagrant-home"),
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "VAGRANT_NO_COLOR": "1",
    }
    return {**kept, **own, **extra}


def vagrant(checkout: Path, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["vagrant", *words],
        cwd=checkout,
        env=environment(checkout, **extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def ruby(checkout: Path, script: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run `script` without Vagrant; it can use `project`."""
    head = "require './provision/vagrant/seed'; require 'json'; project = FirewallLab::Project.new(Dir.pwd); "
    return subprocess.run(
        ["ruby", "-e", head + script],
        cwd=checkout,
        env=environment(checkout, **extra),
        capture_output=True,
        text=True,
        timeout=60,
    )


def described(checkout: Path, **extra: str) -> dict[str, dict]:
    script = """puts JSON.generate(project.machines.to_h { |m| [m.name, {
      role: m.role, ssh: m.ssh_port, ports: m.ports, qemu: project.qemu_args(m), driver: project.driver(m),
      links: m.links.map { |l| { name: l.name, local: l.local_port, remote: l.remote_port } } }] })"""
    done = ruby(checkout, script, **extra)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_ruby
@pytest.mark.parametrize("trex", [False, True])
def test_only_a_generator_with_trex_needs_more(checkout: Path, trex: bool) -> None:
    images = {image: {"box": image} for image in ("generator", "dut-linux", "sink")}
    if trex:
        images["generator"]["trex"] = {"version": "v9.99", "sha256": "0" * 64}
    (checkout / ".fwlab").mkdir()
    (checkout / ".fwlab" / "images.json").write_text(json.dumps(images))
    script = "puts JSON.generate(project.machines.to_h { |m| [m.name, [project.memory_mib(m), project.cpu_model(m)]] })"
    done = ruby(checkout, script)
    assert done.returncode == 0, done.stderr
    usual = {role: [node.memory_mib, TOPOLOGY.machine.cpu_model] for role, node in TOPOLOGY.nodes.items()}
    more = TOPOLOGY.nodes["generator"].with_trex
    wanted = {**usual, "generator": [more.memory_mib, more.cpu_model]} if trex else usual
    assert {role: json.loads(done.stdout)[name] for role, name in MACHINES.items()} == wanted


def seed_file(checkout: Path, machine: str, name: str) -> str:
    script = (
        "FirewallLab::Seed.ensure_key(project.private_key);"
        f"m = project.machines.find {{ |x| x.name == '{machine}' }};"
        f"print FirewallLab::Seed.new(project, m).files.fetch('{name}')"
    )
    done = ruby(checkout, script)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_ruby
def test_ruby_and_python_compute_the_same_ports(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_PORT_OFFSET", str(OFFSET))
    machines = described(checkout)
    for role, name in MACHINES.items():
        assert machines[name]["ssh"] == TOPOLOGY.ssh_port(3, role)
        for link in machines[name]["links"]:
            far = next(other for other in TOPOLOGY.links[link["name"]].ends if other != role)
            assert link["local"] == TOPOLOGY.link_port(3, link["name"], role)
            assert link["remote"] == TOPOLOGY.link_port(3, link["name"], far)


@needs_ruby
def test_an_empty_setting_counts_as_unset(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = dict.fromkeys(("FWLAB_PORT_OFFSET", "FWLAB_LIBVIRT_URI", "FWLAB_CACHE", "FWLAB_TESTBED", "FWLAB_ACCEL"), "")
    script = "m = project.machines.find { |one| one.role == 'dut' };"
    script += "puts JSON.generate([m.ssh_port, project.libvirt_uri, project.cache, project.driver(m)])"
    for name, value in empty.items():
        monkeypatch.setenv(name, value)
    wanted = [TOPOLOGY.ssh_port(3, "dut"), libvirt_uri(), str(cache_directory()), "qemu"]
    assert json.loads(ruby(checkout, script, **empty).stdout) == wanted


@needs_ruby
@pytest.mark.parametrize("own", [{}, {"XDG_CACHE_HOME": "xdg"}, {"FWLAB_CACHE": "cache", "XDG_CACHE_HOME": "xdg"}])
@pytest.mark.parametrize("user", [0, 1000])
def test_ruby_and_python_find_the_same_cache(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, own: dict[str, str], user: int
) -> None:
    settings = {"FWLAB_CACHE": "", "XDG_CACHE_HOME": "", "HOME": str(checkout)}
    settings |= {name: str(checkout / folder) for name, folder in own.items()}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "getuid", lambda: user)
    done = ruby(checkout, f"def Process.uid = {user}; print project.cache", **settings)
    assert done.stdout == str(cache_directory()), done.stderr


@needs_ruby
def test_no_two_machines_share_a_port(checkout: Path) -> None:
    ports = [(kind, port) for machine in described(checkout).values() for kind, port, _ in machine["ports"]]
    assert len(ports) == 2 * (3 + 4)
    assert len(set(ports)) == len(ports)


@needs_ruby
@pytest.mark.parametrize("testbed", ["virtual", "real"])
@pytest.mark.parametrize("accel", ["tcg", "kvm"])
def test_only_the_virtual_dut_counts_instructions(checkout: Path, testbed: str, accel: str) -> None:
    for machine in described(checkout, FWLAB_TESTBED=testbed, FWLAB_ACCEL=accel).values():
        virtual = testbed == "virtual" and machine["role"] == "dut"
        shift = f"shift={TOPOLOGY.clock.icount_shift},sleep=on"
        assert (shift in machine["qemu"]) == virtual
        assert machine["driver"] == ("kvm" if accel == "kvm" and not virtual else "qemu")


@needs_ruby
def test_management_is_on_loopback_only(checkout: Path) -> None:
    for machine in described(checkout).values():
        netdev = machine["qemu"][1]
        assert f"hostfwd=tcp:127.0.0.1:{machine['ssh']}-" in netdev
        assert "restrict=on" in netdev


@needs_ruby
@pytest.mark.parametrize(("role", "machine"), MACHINES.items())
def test_seed_is_a_cloud_config_with_every_link(checkout: Path, role: str, machine: str) -> None:
    text = seed_file(checkout, machine, "user-data")
    assert text.startswith("#cloud-config\n")
    data = yaml.safe_load(text)
    key = (checkout / ".fwlab" / "ssh" / "id_ed25519.pub").read_text().strip()
    assert data["users"][0]["ssh_authorized_keys"] == [key]
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
    hosts = files["/etc/hosts"].split()
    assert {"generator", "dut", "sink"} <= set(hosts)


@needs_ruby
def test_nothing_in_a_seed_asks_for_dhcp(checkout: Path) -> None:
    for machine in MACHINES.values():
        networks = yaml.safe_load(seed_file(checkout, machine, "user-data"))["write_files"]
        for entry in (entry for entry in networks if entry["path"].endswith(".network")):
            assert "DHCP=no" in entry["content"].splitlines(), entry["path"]
        assert yaml.safe_load(seed_file(checkout, machine, "network-config"))["config"] == "disabled"


@needs_ruby
def test_seed_changes_its_instance_with_its_content(checkout: Path) -> None:
    before = yaml.safe_load(seed_file(checkout, "lab03-ipset", "meta-data"))
    again = yaml.safe_load(seed_file(checkout, "lab03-ipset", "meta-data"))
    topology = checkout / "topology.yml"
    topology.write_text(topology.read_text().replace("mtu: 1500", "mtu: 1400"))
    after = yaml.safe_load(seed_file(checkout, "lab03-ipset", "meta-data"))
    assert before == again
    assert before["instance-id"] != after["instance-id"]


@needs_ruby
@needs("xorriso", "genisoimage")
def test_seed_is_a_readable_cd(checkout: Path) -> None:
    script = (
        "FirewallLab::Seed.ensure_key(project.private_key); m = project.machines.first;"
        "2.times { FirewallLab::Seed.new(project, m).write }; print m.seed"
    )
    done = ruby(checkout, script)
    assert done.returncode == 0, done.stderr
    seed = Path(done.stdout)
    assert b"CD001" in seed.read_bytes()[32768:32780]
    assert b"cidata" in seed.read_bytes()[32768:34816]
    assert seed.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in seed.parent.iterdir()] == [seed.name]


@needs_vagrant
def test_vagrantfile_is_valid_before_the_boxes_are_built(checkout: Path) -> None:
    done = vagrant(checkout, "validate")
    assert done.returncode == 0, done.stdout + done.stderr


@needs_vagrant
def test_status_of_a_lab_is_that_of_its_machines(checkout: Path) -> None:
    done = vagrant(checkout, "status", "lab03-ipset", "--machine-readable")
    assert done.returncode == 0, done.stderr
    named = {line.split(",")[1] for line in done.stdout.splitlines() if ",state," in line}
    assert named == set(MACHINES.values())


@needs_vagrant
@pytest.mark.parametrize(
    ("words", "extra", "message"),
    [
        (["up"], {}, "vagrant up needs the name of a lab; the labs are: lab03-ipset, lab11-sriov"),
        (["up", "lab99-no"], {}, "there is no lab or machine lab99-no; the labs are: lab03-ipset, lab11-sriov"),
        (["ssh", "lab99-no"], {}, "there is no lab or machine lab99-no; the labs are: lab03-ipset, lab11-sriov"),
        (["up", "lab03-ipset"], {}, "boxes are not built (generator, dut-linux, sink): run `make boxes`"),
        (["status"], {"FWLAB_TESTBED": "hot"}, "FWLAB_TESTBED=hot: unknown testbed; there are: real, virtual"),
        (["status"], {"FWLAB_ACCEL": "qemu"}, "FWLAB_ACCEL=qemu: must be tcg or kvm (qemu is now called tcg)"),
        (["status"], {"FWLAB_ACCEL": "hvf"}, "FWLAB_ACCEL=hvf: must be tcg or kvm\n"),
        (["status"], {"FWLAB_PORT_OFFSET": "ten"}, "FWLAB_PORT_OFFSET=ten is not a whole number"),
    ],
)
def test_errors_are_one_message_with_a_hint(
    checkout: Path, words: list[str], extra: dict[str, str], message: str
) -> None:
    done = vagrant(checkout, *words, **extra)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert message in said
    assert "next: " in said
    assert ".rb:" not in said, "a backtrace"


@needs_ruby
@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_port_in_use_is_named(checkout: Path, kind: str) -> None:
    """The check itself, since `vagrant up` makes it only once the boxes are built."""
    machine = described(checkout)["lab03-ipset"]
    port = next(port for protocol, port, _ in machine["ports"] if protocol == kind)
    with socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as taken:
        taken.bind((TOPOLOGY.ports.address, port))
        if kind == "tcp":
            taken.listen()
        script = (
            "require './provision/vagrant/ports'; m = project.machines.find { |x| x.role == 'dut' };"
            "begin FirewallLab::Ports.check(project, [m]); rescue FirewallLab::Problem => e; puts e.message; end"
        )
        said = ruby(checkout, script).stdout
    assert f"{kind} port 127.0.0.1:{port} (" in said
    assert "of lab03-ipset) is taken" in said
    assert "FWLAB_PORT_OFFSET=100" in said
