# SPDX-License-Identifier: GPL-2.0-or-later
"""lab06's classes differ in their payload: neither addresses nor lengths nor, but in ex2, ports tell them apart."""

from __future__ import annotations

import numpy as np
import pytest
from scapy.layers.dns import DNS
from scapy.layers.l2 import Ether

from fwlab.checkout.project import find_project, load_topology
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure.labs import load_lab
from fwlab.traffic.classes import classify
from fwlab.traffic.headers import ipv4_numbers, read_headers
from tests import ROOT

PROJECT = find_project(ROOT)
LAB = load_lab(PROJECT, "lab06-payload")
TABLES = TrafficStore(PROJECT, load_topology(PROJECT), LAB)
TRAFFIC = {exercise.id: exercise.traffic for exercise in LAB.exercises if exercise.traffic != "drawn-senders"}
NAMES = list(LAB.classes)
each_exercise = pytest.mark.parametrize("exercise", TRAFFIC)


@each_exercise
def test_every_frame_has_a_class_that_is_judged(exercise: str) -> None:
    found = {NAMES[place] for place in classify(TABLES.table(TRAFFIC[exercise]).frames, LAB.classes)}
    checks = next(one for one in LAB.exercises if one.id == exercise).checks
    assert found == {check.traffic_class for check in checks if check.traffic_class}


@each_exercise
def test_addresses_and_lengths_tell_nothing(exercise: str) -> None:
    frames = TABLES.table(TRAFFIC[exercise]).frames
    found, sources = classify(frames, LAB.classes), ipv4_numbers(read_headers(frames).src)
    assert len(set(frames.lengths.tolist())) == 1
    assert all(set(sources[found == place]) == set(sources) for place in np.unique(found))


@each_exercise
def test_ports_tell_nothing_but_where_the_exercise_is_about_them(exercise: str) -> None:
    ports = set(read_headers(TABLES.table(TRAFFIC[exercise]).frames).dport.tolist())
    assert len(ports) == (2 if exercise == "ex2-port" else 1)


def test_queries_are_queries() -> None:
    frames = TABLES.table("names").frames
    asked = {name: set() for name in ("asked", "mixed", "lookalike", "longer")}
    for frame, place in zip(frames, classify(frames, LAB.classes), strict=True):
        if NAMES[place] in asked:
            asked[NAMES[place]].add(DNS(bytes(Ether(frame)["UDP"].payload)).qd[0].qname)
    mixed = asked.pop("mixed")
    assert len(mixed) == 16
    assert {name.lower() for name in mixed} == {b"www.foo.com."}
    assert not any(b"foo" in name for name in mixed)
    assert asked == {
        "asked": {b"www.foo.com."},
        "lookalike": {b"thatfoo.com."},
        "longer": {b"foo.com.org."},
    }


@pytest.mark.parametrize("case", [case for case in LAB.cases.values() if case.ruleset == "string"], ids=lambda c: c.id)
def test_a_pattern_is_in_the_packets_of_its_case_or_not(case) -> None:
    """Only the cases `-at-` have the word in their packets, and there it ends within the frame."""
    payload = TABLES.table(case.traffic).frames[0][42:]
    pattern = str(case.parameters.get("pattern", "#")).replace("|0000ff0001|", "\0\0\xff\0\1")
    place = payload.find(pattern.encode("latin-1"))
    assert place == (int(case.id.rpartition("-")[2]) if "-at-" in case.id else -1)
