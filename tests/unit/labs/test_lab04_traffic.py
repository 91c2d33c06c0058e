# SPDX-License-Identifier: GPL-2.0-or-later
"""lab04's classes differ in source address and destination port; a list of only one does not separate them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from fwlab.traffic.classes import classify
from fwlab.traffic.headers import ipv4_numbers, read_headers
from tests.checkout import lab_named, tables

LAB = lab_named("lab04-nftables")
TRAFFIC = {exercise.id: exercise.traffic for exercise in LAB.exercises}
BLOCKED, NEIGHBOURS, LEGITIMATE = range(3)
#: Packets in a light load, approximately. Flows without a packet are not judged.
LIGHT = 8192
each_exercise = pytest.mark.parametrize("exercise", TRAFFIC)


@cache
def played(exercise: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(class, source address, destination port) of each frame."""
    frames = tables(LAB.id).table(TRAFFIC[exercise]).frames
    headers = read_headers(frames)
    return classify(frames, LAB.classes), ipv4_numbers(headers.src), headers.dport


@each_exercise
def test_frames_have_classes_in_the_declared_proportion(exercise: str) -> None:
    shares = np.bincount(played(exercise)[0], minlength=3) / len(played(exercise)[0])
    # In ex3 most packets need no lookup.
    assert shares == pytest.approx([0.1, 0.05, 0.85] if exercise == "ex3-pairs" else [0.9, 0.05, 0.05], abs=1e-4)


@each_exercise
def test_a_light_load_covers_every_flow(exercise: str) -> None:
    found, sources, ports = played(exercise)
    flows = (found + 1) << 48 | sources << 16 | ports
    assert len(np.unique(flows[:LIGHT])) == len(np.unique(flows))


@each_exercise
def test_no_prefix_covers_only_blocked_sources(exercise: str) -> None:
    """The shortest prefix around the blocked sources has other sources in it; likewise for ranges of ports."""
    found, sources, ports = played(exercise)
    blocked, others = found == BLOCKED, found != BLOCKED
    inside = (sources >= sources[blocked].min()) & (sources <= sources[blocked].max()) & others
    between = (ports >= ports[blocked].min()) & (ports <= ports[blocked].max()) & others
    assert inside.sum() >= 30
    assert between.sum() >= 50


@each_exercise
def test_more_than_the_legitimate_network_must_pass(exercise: str) -> None:
    """A ruleset that only accepts known flows would need some hundred of them."""
    found, sources, _ports = played(exercise)
    neighbours = found == NEIGHBOURS
    assert len(np.unique(sources[neighbours])) >= 100
    assert not np.isin(sources[neighbours], sources[found == LEGITIMATE]).any()


@pytest.mark.parametrize("exercise", ["ex1-order", "ex3-pairs", "ex4-chains", "ex6-fold", "ex7-budget"])
def test_ports_are_needed(exercise: str) -> None:
    """Blocked hosts may use other ports, so it is wrong to block the hosts."""
    found, sources, _ = played(exercise)
    both = np.intersect1d(sources[found == BLOCKED], sources[found == NEIGHBOURS])
    assert len(both) >= 50


@each_exercise
def test_addresses_are_needed(exercise: str) -> None:
    """Other hosts may use the blocked ports, so it is wrong to block the ports."""
    found, _, ports = played(exercise)
    assert np.isin(ports[found == BLOCKED], ports[found != BLOCKED]).mean() >= 0.4


def test_ex5_classes_differ_in_no_single_address_bit() -> None:
    """Otherwise one mask could replace the list."""
    found, sources, _ = played("ex5-prefixes")
    inside = (sources >= sources[found == BLOCKED].min()) & (sources <= sources[found == BLOCKED].max())
    for low_bits in range(1, 10):
        masked = sources & ((1 << low_bits) - 1)
        assert np.isin(masked[inside & (found == NEIGHBOURS)], masked[found == BLOCKED]).mean() > 0.3


def test_ex2_neighbours_have_addresses_of_a_longer_list() -> None:
    """A list with the step of the thirty that goes on is wrong."""
    found, sources, _ = played("ex2-few")
    last, step = sources[found == BLOCKED].max(), LAB.exercise("ex2-few").parameters["step"]
    behind = np.unique(sources[found == NEIGHBOURS]) - last
    assert ((behind > 0) & (behind < 300 * step) & (behind % step == 0)).sum() >= 10
