# SPDX-License-Identifier: GPL-2.0-or-later
"""topology.yml loads, gives every lab its own ports, and no other file repeats its values."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.model.errors import BadInput
from fwlab.model.topology import ROLES, Topology
from tests import ROOT
from tests.checkout import TOPOLOGY

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


def test_no_two_labs_share_a_port_and_ordinary_users_may_have_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the privileged ports, and below Linux's ephemeral ports."""
    ports = [port for number in LABS for port in ports_of(number)]
    assert len(ports) == 99 * 7
    numbers = {port for _, port in ports}
    assert len(numbers) == len(ports), "nor do TCP and UDP, so that a port names one thing"
    assert (min(numbers) >= 1024, max(numbers) < 32768) == (True, True)
    monkeypatch.setenv("FWLAB_PORT_OFFSET", "100")
    assert ports_of(3) == [(kind, port + 100) for kind, port in ports[14:21]]


def test_addresses_are_for_tests_only() -> None:
    """RFC 2544 and RFC 5180. The ends of a link share a network, and no address or MAC occurs twice."""
    for link in TOPOLOGY.links.values():
        for family, whole in (("ipv4", "198.18.0.0/15"), ("ipv6", "2001:2::/48")):
            near, far = (ipaddress.ip_interface(getattr(end, family)) for end in link.ends.values())
            assert near.network == far.network
            assert near.network.subnet_of(ipaddress.ip_network(whole))
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
    assert len(words_of(TOPOLOGY)) == 4 * 3 + 4
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
