# SPDX-License-Identifier: GPL-2.0-or-later
"""Which system a lab's DUT runs, and what a FreeBSD DUT's seed says."""

import re
import shlex
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Needs
from fwlab.testbed.choices import reject_missing_boxes, topology_of
from tests.checkout import lab_named
from tests.fakes.machines_checkout import TOPOLOGY, declare, made, seed_file, settings, small_checkout

LAB = "lab11-sriov"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


def lab_with(systems: list[str]):
    lab = lab_named("lab03-ipset")
    return lab.model_copy(update={"id": LAB, "needs": Needs(systems=systems)})


def planned_system(checkout: Path, wanted: str) -> str:
    """For Vagrant."""
    try:
        with settings(checkout, FWLAB_DUT=wanted) as plan:
            plan.reject_other_choices(LAB)
            return str(plan.machine(LAB).node["system"])
    except (BadInput, CannotMeasure) as error:
        return str(error)


def measured_system(checkout: Path, systems: list[str]) -> str:
    """For a session."""
    try:
        return topology_of(Project(checkout), lab_with(systems)).nodes["dut"].system
    except (BadInput, CannotMeasure) as error:
        return str(error)


@pytest.mark.parametrize(
    ("systems", "wanted", "box", "found"),
    [
        (["linux"], "", "", "linux"),
        (["freebsd", "linux"], "", "", "freebsd"),
        (["freebsd", "linux"], "linux", "", "linux"),
        (["freebsd"], "linux", "", "freebsd"),
        (["linux"], "freebsd", "", "linux"),
        (["freebsd", "linux"], "", "fwlab-dut-linux-0123", "linux"),
        (["freebsd", "linux"], "freebsd", "fwlab-dut-freebsd-0123", "freebsd"),
        (["freebsd", "linux"], "", "another-box", "freebsd"),
        (["freebsd"], "plan9", "", "FWLAB_DUT=plan9: no DUT runs that; there are: linux, freebsd"),
        (["freebsd", "linux"], "linux", "fwlab-dut-freebsd-0123", f"the DUT of {LAB} runs freebsd; FWLAB_DUT asks for"),
        (["plan9"], "", "", "no DUT runs plan9"),
    ],
)
def test_the_machine_the_variable_and_the_lab_decide_in_this_order(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, systems: list[str], wanted: str, box: str, found: str
) -> None:
    declare(checkout, LAB, systems=systems)
    if box:
        made(checkout, LAB, {}, box)
    monkeypatch.setenv("FWLAB_DUT", wanted)
    said = [planned_system(checkout, wanted), measured_system(checkout, systems)]
    if found in ("linux", "freebsd"):
        assert said == [found, found]
    else:
        assert all(found in text and "next: " in text for text in said), said


def test_a_freebsd_dut_has_its_own_image_and_device_names() -> None:
    assert TOPOLOGY.nodes["dut"].systems == ["linux", "freebsd"]
    freebsd = TOPOLOGY.with_dut("freebsd")
    assert (freebsd.nodes["dut"].system, freebsd.nodes["dut"].image) == ("freebsd", "dut-freebsd")
    assert [link.ends["dut"].dev for link in freebsd.links.values()] == ["vtnet0", "vtnet1"]
    for role in ("generator", "sink"):
        assert freebsd.nodes[role] == TOPOLOGY.nodes[role]
    assert freebsd.end("generator-dut", "generator") == TOPOLOGY.end("generator-dut", "generator")
    assert freebsd.end("dut-sink", "dut").mac == TOPOLOGY.end("dut-sink", "dut").mac
    assert TOPOLOGY.with_dut("linux") is TOPOLOGY
    for system in ("linux", "freebsd"):
        assert TOPOLOGY.system_of(f"fwlab-dut-{system}-0123456789ab") == system


def rc_conf(checkout: Path) -> dict[str, str]:
    """The variables of the seed's rc.conf, as sh(1) reads them."""
    words = shlex.split(seed_file(checkout, LAB, "rc.conf"), comments=True)
    assert all(re.match(r"[a-z0-9_]+=", word) for word in words), words
    return dict(word.split("=", 1) for word in words)


def test_the_seed_of_a_freebsd_dut_says_what_that_of_a_linux_dut_says(checkout: Path) -> None:
    declare(checkout, LAB, systems=["freebsd"])
    conf, topology = rc_conf(checkout), TOPOLOGY.with_dut("freebsd")
    assert conf["hostname"] == "dut"
    assert conf["ifconfig_vtnet2"] == f"inet {topology.machine.management_address}"
    routes = {}
    for link in topology.links.values():
        near, (far_role, far) = link.ends["dut"], next(pair for pair in link.ends.items() if pair[0] != "dut")
        v4, v6 = far.ipv4.split("/")[0], far.ipv6.split("/")[0]
        words = conf[f"ifconfig_{near.dev}"].split()
        assert words[:4] == ["inet", near.ipv4, "mtu", str(link.mtu)]
        assert {"-rxcsum", "-txcsum", "-rxcsum6", "-txcsum6", "-tso", "-lro"} <= set(words)
        assert conf[f"ifconfig_{near.dev}_ipv6"] == f"inet6 {near.ipv6} no_dad"
        assert near.dev in conf["static_arp_pairs"].split()
        assert near.dev in conf["static_ndp_pairs"].split()
        assert conf[f"static_arp_{near.dev}"] == f"{v4} {far.mac}"
        assert conf[f"static_ndp_{near.dev}"] == f"{v6} {far.mac}"
        for prefix in link.behind[far_role]:
            routes[prefix] = f"{prefix} {v6}" if ":" in prefix else f"-net {prefix} {v4}"
    found = [conf[f"route_{name}"] for name in conf["static_routes"].split()]
    found += [conf[f"ipv6_route_{name}"] for name in conf["ipv6_static_routes"].split()]
    assert sorted(found) == sorted(routes.values())
    assert not re.search("dhcp|accept_rtadv", " ".join(conf.values()), re.IGNORECASE)
    assert seed_file(checkout, LAB, "authorized_keys").splitlines()[1:] == ["ssh-ed25519 AAAA fwlab"]
    assert {"generator", "dut", "sink"} <= set(seed_file(checkout, LAB, "hosts").split())


BUILD = "packer/build dut-freebsd"


@pytest.mark.parametrize(
    ("others", "systems", "hint"),
    [
        ([], ["freebsd", "linux"], f"{BUILD}; or without it, on linux only: FWLAB_DUT=linux and the same command"),
        ([], ["freebsd"], BUILD),
        (["sink"], ["freebsd"], "make boxes"),
    ],
)
def test_without_the_box_the_way_to_it_is_named(others: list[str], systems: list[str], hint: str) -> None:
    with pytest.raises(BadInput) as refused:
        reject_missing_boxes(LAB, [*others, "dut-freebsd"], "dut-freebsd", systems, "freebsd")
    said = "boxes are not built (sink, dut-freebsd): run `make boxes`"
    of_dut = f"{LAB}: its DUT runs freebsd, and the box dut-freebsd is not built"
    assert (refused.value.message, refused.value.hint) == (said if others else of_dut, hint)
    reject_missing_boxes(LAB, [], "dut-freebsd", systems, "freebsd")
