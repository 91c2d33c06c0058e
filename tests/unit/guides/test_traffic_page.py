# SPDX-License-Identifier: GPL-2.0-or-later
"""guides/traffic.md: its numbers, names and files for one traffic are those of the lab.

test_docs.py tests the commands of all pages.
"""

from __future__ import annotations

import ipaddress

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from fwlab.checkout.project import find_project, load_topology
from fwlab.generator.sink import counting_ruleset
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import lab_part_spec
from fwlab.model.results import Measured
from fwlab.model.trial import Delivery
from fwlab.traffic.classes import count_classes
from fwlab.traffic.frame_loop import Table

PROJECT = find_project()
LAB = load_lab(PROJECT, "lab03-ipset")
PAGE = " ".join((PROJECT.root / "guides/traffic.md").read_text().split())


@pytest.fixture(scope="module")
def attack() -> Table:
    return TrafficStore(PROJECT, load_topology(PROJECT), LAB).table("attack")


def test_profile_and_streams(attack: Table) -> None:
    assert "[labs/common/mix.py]" in PAGE
    assert LAB.traffic["attack"].profile == "../common/mix.py"
    assert len(attack.frames.labels) == 3


def test_shares_of_the_classes(attack: Table) -> None:
    found = {name: count for name, count in count_classes(attack.frames, LAB.classes).items() if count}
    assert found == {"blacklisted": 18_000, "bystanders": 1000, "legitimate": 1000}


def test_display_filter_finds_the_legitimate_network(attack: Table) -> None:
    assert "`ip.src == 198.18.10.0/24`" in PAGE
    network, found = ipaddress.ip_network("198.18.10.0/24"), 0
    for frame in attack.frames:
        # Offset of the source address in an IPv4 header without options, after Ethernet.
        found += ipaddress.ip_address(frame[26:30]) in network
    packet = Ether(attack.frames[0])
    assert bytes(packet[IP])[:1] == b"\x45"
    assert packet[UDP].dport == 5000
    assert found == 1000
    assert "1000 of 20 000 frames" in PAGE
    assert len(attack.frames) == 20_000
    first = LAB.classes["blacklisted"].sources.first
    assert f"`{first}`" in PAGE
    assert f"`{first + 1}`" in PAGE, "a bystander's"


def test_the_exercise_plays_it_and_the_sink_counts_it() -> None:
    """Its start blocks the blacklist and nothing else; the page names the sink's counters and the report's fields."""
    exercise = LAB.exercise("ex3-ipset")
    assert exercise.traffic == "attack"
    assert "delivered" in {check.metric for check in exercise.checks}
    parameters = exercise.parameters
    [file] = lab_part_spec(_Setting, exercise, "start").files
    dropped = {line.split()[3] for line in file.text.splitlines() if line.startswith("-A FORWARD -s")}
    assert len(dropped) == parameters["attackers"]
    assert file.text.count("-j DROP") == len(dropped)
    rules = counting_ruleset("eth0", LAB.classes)
    for name in ("blacklisted", "bystanders", "legitimate"):
        assert f"counter class-{name} " in rules
        assert f"`class-{name}`" in PAGE
    assert "deliveries" in Measured.model_fields
    assert {"sent", "offered", "arrived"} <= set(Delivery.model_fields)


class _Setting:
    lab, topology, project = LAB, load_topology(PROJECT), PROJECT
