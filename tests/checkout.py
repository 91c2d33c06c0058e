# SPDX-License-Identifier: GPL-2.0-or-later
"""This checkout with its topology and its labs, each read once for all tests, which do not change them."""

from __future__ import annotations

from functools import cache, lru_cache

from fwlab.checkout.project import find_project, lab_ids, load_topology
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from fwlab.traffic.frame_loop import TABLE_FRAMES
from tests import ROOT

PROJECT = find_project(ROOT)
#: As topology.yml says: this checkout may have shifted its ports.
TOPOLOGY = load_topology(PROJECT).model_copy(update={"port_shift": 0})
LAB_IDS = lab_ids(PROJECT)
#: Of the traffic that a lab's tests share.
SEED = 2


@cache
def _read(name: str) -> Lab:
    return load_lab(PROJECT, name)


def lab_named(name: str) -> Lab:
    """The lab as it was read: a copy without what is computed on request, which a changed copy would keep."""
    return _read(name).model_copy()


@lru_cache(maxsize=1)  # hundreds of MB, and the tests of a lab run one after the other (tests/unit/conftest.py)
def tables(name: str) -> TrafficStore:
    """The lab's traffic as SEED draws it, without what only fills a table of connections."""
    return TrafficStore(PROJECT, TOPOLOGY, lab_named(name).whole, SEED, first=TABLE_FRAMES)
