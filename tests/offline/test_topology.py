# SPDX-License-Identifier: GPL-2.0-or-later
"""topology.yml loads, gives every lab its own ports, and no other file repeats its values."""

from __future__ import annotations

import functools
import ipaddress
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fwlab.host.project import Project, load_topology
from fwlab.model.errors import BadInput
from fwlab.model.topology import ROLES, Topology
from tests.offline.programs import needs

ROOT = Path(__file__).resolve().parents[2]
TOPOLOGY = load_topology(Project(ROOT))
LABS = range(1, 100)
PLACES = ("fwlab", "provision", "packer", "Vagrantfile", "labs")
#: Files that may contain an address of topology.yml, and why it is a different one there.
OTHERS = {
    # The build machine on QEMU's own network, which exists only during a build.
    "packer/seed": {"10.0.2.15"},
}


def ports_of(number: int) -> list[tuple[str, int]]:
    """Everything that a lab's machines listen on, as (protocol, port)."""
    ssh = [("tcp", TOPOLOGY.ssh_port(number, role)) for role in ROLES]
    ends = [(name, role) for name, link in TOPOLOGY.links.items() for role in link.ends]
    return ssh + [("udp", TOPOLOGY.link_port(number, name, role)) for name, role in ends]


@pytest.fixture(autouse=True)
def no_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FWLAB_PORT_OFFSET", raising=False)


def test_three_nodes_in_a_row() -> None:
    assert tuple(TOPOLOGY.nodes) == ROLES
    assert [set(link.ends) for link in TOPOLOGY.links.values()] == [{"generator", "dut"}, {"dut", "sink"}]


def test_no_two_labs_share_a_port() -> None:
    ports = [port for number in LABS for port in ports_of(number)]
    assert len(ports) == 99 * 7
    assert len({port for _, port in ports}) == len(ports), "nor do TCP and UDP, so that a port names one thing"


def test_ports_are_free_for_ordinary_users() -> None:
    """Above the privileged ports, and below Linux's ephemeral ports."""
    numbers = [port for number in LABS for _, port in ports_of(number)]
    assert min(numbers) >= 1024
    assert max(numbers) < 32768


def test_offset_shifts_every_port(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ports_of(3)
    monkeypatch.setenv("FWLAB_PORT_OFFSET", "100")
    assert ports_of(3) == [(kind, port + 100) for kind, port in before]


def test_addresses_are_for_tests_only() -> None:
    """RFC 2544 and RFC 5180. The ends of a link share a network, and no address or MAC occurs twice."""
    for link in TOPOLOGY.links.values():
        near, far = (ipaddress.ip_interface(end.ipv4) for end in link.ends.values())
        assert near.network == far.network
        assert near.network.subnet_of(ipaddress.ip_network("198.18.0.0/15"))
        near, far = (ipaddress.ip_interface(end.ipv6) for end in link.ends.values())
        assert near.network == far.network
        assert near.network.subnet_of(ipaddress.ip_network("2001:2::/48"))
    ends = [end for link in TOPOLOGY.links.values() for end in link.ends.values()]
    for field in ("mac", "ipv4", "ipv6", "port_offset"):
        assert len({getattr(end, field) for end in ends}) == len(ends)
    assert all(int(end.mac[:2], 16) & 3 == 2 for end in ends), "locally administered, unicast"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("per_lab: 10", "per_lab: ten", "topology.yml: ports.per_lab: Input should be a valid integer"),
        ("  receive_ring: 1024", "  ring: 1024", "topology.yml: machine.ring: there is no such field"),
        ("    image: sink\n", "", "topology.yml: nodes.sink.image: this field is missing"),
        ("  sink:\n    image", "  monitor:\n    image", "topology.yml: nodes.monitor"),
        ("    mtu:", "    queues: 1\n    mtu:", "topology.yml: links.generator-dut.queues: there is no such field"),
        ("  dut:\n", "  dut:\n    forwards: true\n", "topology.yml: nodes.dut.forwards: there is no such field"),
        ("\nclock:", "\nclock: [", "topology.yml:25: not YAML: expected ',' or ']'"),
    ],
)
def test_error_names_the_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (ROOT / "topology.yml").read_text()
    assert old in text
    (tmp_path / "topology.yml").write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput) as refused:
        load_topology(Project(tmp_path))
    assert message in refused.value.message
    assert "fix topology.yml" in refused.value.hint


@needs("ruby")
@pytest.mark.parametrize("offset", ["0", "300"])
def test_vagrants_helper_computes_the_same_ports(tmp_path: Path, offset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [1, 3, 12, 99]
    for number in numbers:
        (tmp_path / "labs" / f"lab{number:02}-x").mkdir(parents=True)
    shutil.copy(ROOT / "topology.yml", tmp_path)
    script = (
        f"require '{ROOT}/provision/vagrant/lab_machines'; require 'json';"
        "machines = FirewallLab::Project.new(Dir.pwd).machines;"
        "puts JSON.generate(machines.map { |m| [m.lab, m.ports.map { |p| p[0, 2] }] })"
    )
    env = {**os.environ, "FWLAB_PORT_OFFSET": offset}
    done = subprocess.run(["ruby", "-e", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[int, list[tuple[str, int]]] = {number: [] for number in numbers}
    for lab, ports in json.loads(done.stdout):
        found[int(lab[3:5])] += [(kind, port) for kind, port in ports]
    monkeypatch.setenv("FWLAB_PORT_OFFSET", offset)
    for number in numbers:
        assert sorted(found[number]) == sorted(ports_of(number))


# ---- strays ---------------------------------------------------------------------------------------------------


def words_of(topology: Topology) -> set[str]:
    """Values that no other file may contain: addresses, MACs and base ports.

    The loopback address is excepted, because hosts files and prose name it.
    """
    ends = [end for link in topology.links.values() for end in link.ends.values()]
    found = {word for end in ends for word in (end.mac, end.ipv4.split("/")[0], end.ipv6.split("/")[0])}
    found |= {topology.machine.management_address.split("/")[0], topology.machine.management_network}
    return found | {str(topology.ports.ssh_base), str(topology.ports.link_base)}


def is_searched(path: Path) -> bool:
    """In labs only the rulesets: profiles and lab.yml may name addresses of the traffic."""
    parts = path.relative_to(ROOT).parts
    in_place = parts[0] != "labs" or "rulesets" in parts
    return path.is_file() and in_place and "__pycache__" not in parts and path.suffix != ".pyc"


def test_no_other_file_repeats_an_address_mac_or_port() -> None:
    words = "|".join(map(re.escape, sorted(words_of(TOPOLOGY))))
    pattern = re.compile(rf"(?<![\w.:])({words})(?![\w:]|\.\d)", re.IGNORECASE)
    searched = [path for place in PLACES for path in [ROOT / place, *(ROOT / place).rglob("*")]]
    strays = {
        (str(path.relative_to(ROOT)), hit[0])
        for path in searched
        if is_searched(path)
        for hit in pattern.finditer(path.read_text(errors="replace"))
    }
    assert not {(name, word) for name, word in strays if word not in OTHERS.get(name, set())}
    assert not {(name, word) for name, known in OTHERS.items() for word in known if (name, word) not in strays}


def test_the_search_would_find_one() -> None:
    raw = yaml.safe_load((ROOT / "topology.yml").read_text())
    assert raw["links"]["dut-sink"]["ends"]["dut"]["mac"] in words_of(TOPOLOGY)
    assert len(words_of(TOPOLOGY)) == 4 * 3 + 4


# ---- every setting has an effect ------------------------------------------------------------------------------


def settings_of(data: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all values."""
    if isinstance(data, dict):
        return [leaf for key, value in data.items() for leaf in settings_of(value, (*path, key))]
    return [path]


def changed(data: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """A copy with one value replaced by another of the same type."""
    copied = json.loads(json.dumps(data))
    *parents, last = path
    place = functools.reduce(dict.__getitem__, parents, copied)
    value = place[last]
    place[last] = {int: lambda n: n + 1, str: lambda s: f"{s}9", list: lambda items: items[1:]}[type(value)](value)
    return copied


#: Settings that only the Python package reads, and where.
READ_BY_PYTHON = {("nodes", role, "system"): "fwlab/measure/nodes.py" for role in ROLES}
#: Settings of the machine whose image contains TRex: test_vagrantfile.py tests them.
WITH_TREX = ("nodes", "generator", "with_trex")
#: Names of modules: a changed name would be a module that does not exist.
NAMES = {("links", name, "kind") for name in TOPOLOGY.links}


@needs("ruby")
@needs("ssh-keygen")
def test_every_setting_changes_a_machine_or_its_seed(tmp_path: Path) -> None:
    """Otherwise the setting would have no effect, as once `queues` and `forwards`."""
    for name in ("topology.yml", "Vagrantfile"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("vagrant", "cloud-init", "host"):
        shutil.copytree(ROOT / "provision" / name, tmp_path / "provision" / name)
    for lab, said in (("lab03-x", "{}"), ("lab08-x", "{systems: [freebsd, linux]}"), ("lab11-x", "{nics: [e1000e]}")):
        (tmp_path / "labs" / lab).mkdir(parents=True)
        (tmp_path / "labs" / lab / "lab.yml").write_text(f"needs: {said}\n")
    data = yaml.safe_load((ROOT / "topology.yml").read_text())
    del data["cores"]  # of no machine: test_model_cycles.py
    settings = [path for path in settings_of(data) if path[:3] != WITH_TREX and path not in {*READ_BY_PYTHON, *NAMES}]
    script = Path(__file__).with_name("record_vagrantfile.rb")
    done = subprocess.run(
        ["ruby", script, tmp_path],
        cwd=tmp_path,
        input=json.dumps([data, *(changed(data, path) for path in settings)]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plain, *others = json.loads(done.stdout)
    without_effect = [".".join(path) for path, made in zip(settings, others, strict=True) if made == plain]
    assert not without_effect
    assert all(".".join(path[2:]) in (ROOT / place).read_text() for path, place in READ_BY_PYTHON.items())
