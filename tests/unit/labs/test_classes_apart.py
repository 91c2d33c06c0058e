# SPDX-License-Identifier: GPL-2.0-or-later
"""In lab01's and lab02's exercises on addresses or state, classes differ only in their addresses.

Otherwise a rule on a port, a length or the payload would pass without naming a host.
"""

from __future__ import annotations

import numpy as np
import pytest

from fwlab.checkout.project import find_project, load_topology
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure.labs import load_lab
from fwlab.traffic.classes import classify, count_classes
from tests import ROOT
from tests.fakes.traffic_forms import undrawn

PROJECT = find_project(ROOT)
TOPOLOGY = load_topology(PROJECT)
LABS = {name: load_lab(PROJECT, name) for name in ("lab01-forwarding", "lab02-conntrack")}
TABLES = {name: TrafficStore(PROJECT, TOPOLOGY, lab) for name, lab in LABS.items()}
#: Bytes of source and destination.
SOURCE, DESTINATION = slice(26, 30), slice(30, 34)
#: (lab, traffic, classes to compare, bytes that may differ)
ALIKE = [
    ("lab01-forwarding", "attack", ["victim", "neighbours", "customers"], [DESTINATION]),
    ("lab01-forwarding", "listed", ["listed", "bystanders", "customers"], [DESTINATION]),
    ("lab01-forwarding", "everything", ["victim", "listed", "bystanders", "customers"], [DESTINATION]),
    ("lab02-conntrack", "talk", ["answers", "forged"], [SOURCE]),
    ("lab02-conntrack", "blacklist", ["answers", "forged"], [SOURCE]),
    ("lab02-conntrack", "blacklist", ["blocked", "blocked-hosts", "queries"], [SOURCE]),
    ("lab02-conntrack", "dns-flood", ["answers", "forged"], [SOURCE]),
]


@pytest.mark.parametrize(("name", "traffic", "alike", "apart"), ALIKE)
def test_classes_differ_only_in_their_addresses(name: str, traffic: str, alike: list[str], apart: list[slice]) -> None:
    frames, classes = TABLES[name].table(traffic).frames, LABS[name].classes
    whole = undrawn(frames)
    for part in apart:
        whole[:, part] = 0
    places = [list(classes).index(one) for one in alike]
    found = classify(frames, classes)
    assert {place for place in places if (found == place).any()} == set(places)
    chosen = np.isin(found, places)
    assert len(np.unique(frames.lengths[chosen])) == 1
    assert len(np.unique(whole[chosen], axis=0)) == 1


#: Traffic back to the generator does not reach the sink. Where it could be dropped, `returned` judges it.
UNSEEN = {"questions"}
#: A busy host loses full-size frames after the DUT. The page says so, and the DUT's own count is judged instead.
NOT_COUNTED = {"ex5-download"}
PLAYED = [
    (name, exercise.id, exercise.traffic)
    for name, lab in LABS.items()
    for exercise in lab.exercises
    if lab.traffic[exercise.traffic].profile and exercise.id not in NOT_COUNTED
]


@pytest.mark.parametrize(("name", "exercise", "traffic"), PLAYED)
def test_each_class_in_the_traffic_is_judged(name: str, exercise: str, traffic: str) -> None:
    lab = LABS[name]
    counts = count_classes(TABLES[name].table(traffic).frames, lab.classes)
    checks = [check for check in lab.exercise(exercise).checks if check.metric != "returned"]
    assert counts["other"] == 0
    assert {c.traffic_class for c in checks} - {None} == {one for one, count in counts.items() if count} - UNSEEN
