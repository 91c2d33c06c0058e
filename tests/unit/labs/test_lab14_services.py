# SPDX-License-Identifier: GPL-2.0-or-later
"""lab14: the endpoints that its rulesets give are those by which packets are judged; its update adds one of them."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network

import numpy as np
import pytest

from fwlab.rulesets.files import lab_ruleset
from fwlab.rulesets.kind import is_update
from fwlab.traffic.headers import ipv4_numbers, read_headers
from tests.checkout import TOPOLOGY, lab_named, tables

LAB = lab_named("lab14-services")
#: iptables' rules for a service, and for its endpoint, whose chains have the service's number.
SERVICE = re.compile(r"^-A KUBE-SERVICES -d ([\d.]+)/32 .* --dport (\d+) -j KUBE-SVC-(\d+)$", re.MULTILINE)
ENDPOINT = re.compile(r"^-A KUBE-SEP-(\d+) .* --to-destination ([\d.]+):(\d+)$", re.MULTILINE)


def given(exercise: str, *, update: bool) -> dict[int, tuple[int, int, int]]:
    """By the address of a service, its port, its endpoint and the endpoint's port, as a file of the start has them."""
    files = lab_ruleset(LAB.folder / "rulesets" / exercise / "start", {}, TOPOLOGY)
    text = next(file.text for file in files if is_update(file.name) == update)
    endpoints = {number: (int(IPv4Address(address)), int(port)) for number, address, port in ENDPOINT.findall(text)}
    return {
        int(IPv4Address(service)): (int(port), *endpoints[number]) for service, port, number in SERVICE.findall(text)
    }


@pytest.mark.parametrize(("exercise", "update"), [("ex1-lookup", False), ("ex2-update", True)])
def test_each_service_that_has_packets_has_the_endpoint_of_the_judge(exercise: str, update: bool) -> None:
    found = LAB.exercise(exercise)
    assert found is not None
    judged = LAB.traffic[found.traffic].redirected
    assert judged is not None
    services, endpoints = IPv4Network(judged.services), IPv4Network(judged.endpoints)
    rules = given(exercise, update=update)
    for service, rule in rules.items():
        number = (service - int(services.network_address)) * judged.factor % services.num_addresses
        assert rule == (judged.port, int(endpoints.network_address) + number, judged.endpoint_port)
    headers = read_headers(tables(LAB.id).table(found.traffic).frames)
    assert set(np.unique(ipv4_numbers(headers.dst)[headers.dport == judged.port])) == set(rules)


def test_the_update_adds_the_last_service_alone() -> None:
    before, after = given("ex2-update", update=False), given("ex2-update", update=True)
    assert [str(IPv4Address(service)) for service in after.keys() - before.keys()] == ["198.19.32.254"]
    assert before.items() < after.items()
