# SPDX-License-Identifier: GPL-2.0-or-later
"""This checkout with its topology and its labs, each read once for all tests, which do not change them."""

from __future__ import annotations

from functools import cache

from fwlab.checkout.project import find_project, lab_ids, load_topology
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from tests import ROOT

PROJECT = find_project(ROOT)
#: As topology.yml says: this checkout may have shifted its ports.
TOPOLOGY = load_topology(PROJECT).model_copy(update={"port_shift": 0})
LAB_IDS = lab_ids(PROJECT)


@cache
def _read(name: str) -> Lab:
    return load_lab(PROJECT, name)


def lab_named(name: str) -> Lab:
    """The lab as it was read: a copy without what is computed on request, which a changed copy would keep."""
    return _read(name).model_copy()
