# SPDX-License-Identifier: GPL-2.0-or-later
"""The classes of the labs' traffic: each is judged, and no mask over addresses separates what a list must.

That no field tells classes apart is for test_nothing_fixed.
"""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Address

import numpy as np
import pytest

from fwlab.checkout.project import read_yaml
from fwlab.generator.traffic_store import TrafficStore
from fwlab.model.lab import Lab
from fwlab.traffic.classes import classify, count_classes
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import read_headers
from tests.checkout import PROJECT, TOPOLOGY, lab_named, tables

TEMPLATE = "_template"
NAMES = (TEMPLATE, "lab01-forwarding", "lab02-conntrack", "lab03-ipset", "lab05-drop-early", "lab06-payload")
#: Traffic back to the generator does not reach the sink. Where it could be dropped, `returned` judges it.
UNSEEN = {"questions"}
#: Of the drawn senders some are not judged.
NOT_COUNTED = {"ex5-whose-limit"}


@cache
def lab_of(name: str) -> Lab:
    if name != TEMPLATE:
        return lab_named(name)
    template = read_yaml(PROJECT, PROJECT.labs / TEMPLATE / "lab.yml", Lab)
    template._folder = PROJECT.labs / TEMPLATE
    return template


def frames_of(name: str, traffic: str) -> Frames:
    store = TrafficStore(PROJECT, TOPOLOGY, lab_of(name)) if name == TEMPLATE else tables(name)
    return store.table(traffic).frames


@pytest.mark.parametrize("name", NAMES)
def test_each_class_in_the_traffic_is_judged(name: str) -> None:
    lab = lab_of(name)
    for exercise in lab.exercises:
        if exercise.id in NOT_COUNTED or lab.traffic[exercise.traffic].profile is None:
            continue
        counts = count_classes(frames_of(name, exercise.traffic), lab.classes)
        checks = [
            check
            for one in lab.exercises
            if one.traffic == exercise.traffic
            for check in one.checks
            if check.metric != "returned"
        ]
        assert counts["other"] == 0, exercise.id
        judged = {check.traffic_class for check in checks} - {None}
        assert judged == {one for one, count in counts.items() if count} - UNSEEN, exercise.id


@pytest.mark.parametrize(
    ("traffic", "one", "other"),
    [
        ("talk", "answers", "forged"),
        ("blacklist", "answers", "forged"),
        ("blacklist", "blocked-hosts", "queries"),
        ("dns-flood", "answers", "forged"),
    ],
)
def test_no_mask_separates_the_hosts_of_two_classes_of_lab02(traffic: str, one: str, other: str) -> None:
    """`-s 198.18.53.0/255.255.255.1` matches every second address, so these must not alternate."""
    frames, classes = frames_of("lab02-conntrack", traffic), lab_of("lab02-conntrack").classes
    found, last = classify(frames, classes), read_headers(frames).src[:, 3]
    ours, theirs = (np.unique(last[found == list(classes).index(name)]) for name in (one, other))
    assert min(len(ours), len(theirs)) >= 32
    for mask in range(1, 256):
        values = set((ours & mask).tolist())
        assert len(values) > 1 or values & set((theirs & mask).tolist()), f"mask {mask} separates them"


def test_one_attacker_of_lab03_has_neighbours_on_both_sides() -> None:
    """Otherwise a range that ends or begins with the attacker would pass, or a mask that only few addresses fit."""
    headers = read_headers(frames_of("lab03-ipset", "one-attacker"))
    sources = {int.from_bytes(source[:4].tobytes(), "big") for source in headers.src}
    attacker = int(IPv4Address("198.18.20.66"))
    assert {attacker, attacker + 1} <= sources
    assert {attacker - 1, attacker - 2} & sources
    near = [source for source in sources if (source ^ attacker) & 0xFFFFFF00 == 0 and source != attacker]
    for bit in range(7):
        assert any((source ^ attacker) >> bit & 1 == 0 for source in near), f"bit {bit} alone tells it apart"
