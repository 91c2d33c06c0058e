# SPDX-License-Identifier: GPL-2.0-or-later
"""lab02's exercises are about state: no mask over the source address may tell apart what state must tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from fwlab.checkout.project import find_project, load_topology
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure.labs import load_lab
from fwlab.traffic.classes import classify
from fwlab.traffic.headers import read_headers
from tests import ROOT

PROJECT = find_project(ROOT)
LAB = load_lab(PROJECT, "lab02-conntrack")
TABLES = TrafficStore(PROJECT, load_topology(PROJECT), LAB)


@pytest.mark.parametrize(
    ("traffic", "one", "other"),
    [
        ("talk", "answers", "forged"),
        ("blacklist", "answers", "forged"),
        ("blacklist", "blocked-hosts", "queries"),
        ("dns-flood", "answers", "forged"),
    ],
)
def test_no_mask_separates_the_hosts_of_two_classes(traffic: str, one: str, other: str) -> None:
    """`-s 198.18.53.0/255.255.255.1` matches every second address, so these must not alternate."""
    frames = TABLES.table(traffic).frames
    found, last = classify(frames, LAB.classes), read_headers(frames).src[:, 3]
    names = list(LAB.classes)
    ours = np.unique(last[found == names.index(one)])
    theirs = np.unique(last[found == names.index(other)])
    assert len(ours) >= 32
    assert len(theirs) >= 32
    for mask in range(1, 256):
        values = set((ours & mask).tolist())
        assert len(values) > 1 or values & set((theirs & mask).tolist()), f"mask {mask} separates them"
