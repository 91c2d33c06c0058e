# SPDX-License-Identifier: GPL-2.0-or-later
"""lab05's bystanders have addresses that a longer blacklist would have, and so one is wrong."""

from __future__ import annotations

from ipaddress import IPv4Address

import numpy as np
import pytest

from fwlab.model.lab import Exercise
from fwlab.traffic.classes import classify
from fwlab.traffic.headers import ipv4_numbers, read_headers
from tests.checkout import lab_named, tables

LAB = lab_named("lab05-drop-early")
BYSTANDERS = list(LAB.classes).index("bystanders")
#: Ten prefixes that the blacklist of ex3 has, and those of the other exercises do not.
PREFIXES = range(int(IPv4Address("198.18.128.0")), int(IPv4Address("198.18.138.0")))


@pytest.mark.parametrize("exercise", LAB.exercises, ids=lambda exercise: str(exercise.id))
def test_bystanders_have_addresses_of_a_longer_list(exercise: Exercise) -> None:
    frames = tables(LAB.id).table(exercise.traffic).frames
    sources = np.unique(ipv4_numbers(read_headers(frames).src)[classify(frames, LAB.classes) == BYSTANDERS])
    first, step, count = (exercise.parameters[name] for name in ("attacker", "step", "attackers"))
    turns, between = np.divmod(sources.astype(int) - int(IPv4Address(first)), step)
    longer = (between == 0) & (turns >= count) & (sources < PREFIXES.start)
    with_prefixes = np.isin(sources, np.arange(PREFIXES.start, PREFIXES.stop))
    assert longer.sum() >= count // 100
    assert (with_prefixes.sum() > 0) == (exercise.id != "ex3-filters")
