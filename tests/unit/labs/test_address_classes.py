# SPDX-License-Identifier: GPL-2.0-or-later
"""In exercises about addresses, packets differ only in the source address."""

from __future__ import annotations

from ipaddress import IPv4Address

import numpy as np
import pytest
from pydantic import ValidationError

from fwlab.checkout.project import find_project, load_topology, read_yaml
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure.labs import load_lab
from fwlab.model.declared_traffic import AddressList
from fwlab.model.lab import Lab
from fwlab.traffic.classes import count_classes
from fwlab.traffic.headers import read_headers
from tests import ROOT
from tests.fakes.traffic_forms import undrawn

PROJECT = find_project(ROOT)
TOPOLOGY = load_topology(PROJECT)
TEMPLATE = "_template"


def labs() -> dict[str, Lab]:
    template = read_yaml(PROJECT, PROJECT.labs / TEMPLATE / "lab.yml", Lab)
    template._folder = PROJECT.labs / TEMPLATE
    return {TEMPLATE: template, **{name: load_lab(PROJECT, name) for name in ("lab03-ipset", "lab05-drop-early")}}


#: A lab, the store of its frame tables, and a traffic of its exercises.
BY_ADDRESS = [
    pytest.param(lab, store, traffic, id=f"{name}:{traffic}")
    for name, lab, store in ((name, lab, TrafficStore(PROJECT, TOPOLOGY, lab)) for name, lab in labs().items())
    for traffic in sorted({exercise.traffic for exercise in lab.exercises})
]


@pytest.mark.parametrize(("lab", "store", "traffic"), BY_ADDRESS)
def test_classes_differ_only_in_the_address(lab: Lab, store: TrafficStore, traffic: str) -> None:
    """Otherwise a rule on a port, a length, a TTL or the payload would pass without naming an address.

    That the destination tells nothing apart is for test_nothing_fixed.
    """
    frames = store.table(traffic).frames
    whole = undrawn(frames)
    whole[:, 26:34] = 0
    assert len(np.unique(frames.lengths)) == 1
    assert (whole == whole[0]).all()


@pytest.mark.parametrize(("lab", "store", "traffic"), BY_ADDRESS)
def test_every_packet_belongs_to_a_class(lab: Lab, store: TrafficStore, traffic: str) -> None:
    """Each packet belongs to a class, and each class in the traffic is judged."""
    frames = store.table(traffic).frames
    found = count_classes(frames, lab.classes)
    assert found["other"] == 0
    judged = {check.traffic_class for e in lab.exercises if e.traffic == traffic for check in e.checks} - {None}
    assert judged == {name for name, count in found.items() if count}


def test_one_attacker_has_neighbours_on_both_sides() -> None:
    """Otherwise a range that ends or begins with the attacker would pass, or a mask that only few addresses fit."""
    lab = load_lab(PROJECT, "lab03-ipset")
    frames = TrafficStore(PROJECT, TOPOLOGY, lab).table("one-attacker").frames
    sources = {int.from_bytes(source[:4].tobytes(), "big") for source in read_headers(frames).src}
    attacker = int(IPv4Address("198.18.20.66"))
    assert {attacker, attacker + 1} <= sources
    assert {attacker - 1, attacker - 2} & sources
    for bit in range(7):
        alike = [source for source in sources if (source ^ attacker) & 0xFFFFFF00 == 0 and source != attacker]
        assert any((source ^ attacker) >> bit & 1 == 0 for source in alike), f"bit {bit} alone tells it apart"


@pytest.mark.parametrize("first", [True, 1, 2.5, None])
def test_the_first_address_of_a_list_is_text(first: object) -> None:
    """`true` must not count as an address."""
    with pytest.raises(ValidationError, match="first"):
        AddressList.model_validate({"first": first, "count": 3})
