# SPDX-License-Identifier: GPL-2.0-or-later
"""lab02's ex6: rates, pauses and lifetimes, by the arithmetic that the page asks for, and the order of the packets."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from fwlab.generator.traffic_profile import load_profile
from fwlab.metrics.delivery import FIRST_FILLED
from fwlab.rulesets.files import lab_ruleset
from fwlab.traffic.expand import expand
from tests.checkout import PROJECT, TOPOLOGY, lab_named

LAB = lab_named("lab02-conntrack")
EXERCISE = next(one for one in LAB.exercises if one.id == "ex6-lifetimes")
#: Packets that the DUT takes at a time.
BATCH = 64
#: What the page says of pauses (s), and what the kernel has for entries of closed connections and of UDP (s).
LATE, SILENT, IDLE = 2, 3, 5
DEFAULTS = {"tcp_timeout_time_wait": 120, "udp_timeout": 30, "tcp_timeout_established": 432_000}


def tunables(*, most: bool) -> dict:
    """The tunables of lab.yml with the least, or the most, that a seed may draw."""
    found: dict = dict(LAB.traffic["lifetimes"].tunables)
    for drawn in LAB.drawn.values():
        for place in drawn.adds_to:
            *_, traffic, _, name = place.split(".")
            if traffic == "lifetimes":
                found[name] += drawn.values[-1 if most else 0]
    return found


def streams(*, most: bool) -> list[dict]:
    profile = LAB.profile("lifetimes")
    assert profile is not None
    return load_profile(PROJECT, profile, tunables(most=most))


@pytest.mark.parametrize("most", [False, True])
def test_the_rates_are_those_of_the_dut_s_clock(most: bool) -> None:
    """All streams together are as fast as the table is filled, and each of them has a part of it."""
    rates = [one["mode"]["rate"]["value"] for one in streams(most=most) if one["mode"]["type"] == "continuous"]
    assert sum(rates) == FIRST_FILLED
    assert min(rates) > 0


def test_a_conversation_keeps_its_order_and_never_lies_in_one_batch() -> None:
    """Past the first packets, when not all streams have begun, which a tick of the DUT's clock holds apart."""
    made = expand(streams(most=False), limit=8000)
    heads, places = made.matrix(54)[:, [23, *range(26, 38)]], defaultdict(list)
    for place, head in enumerate(map(bytes, np.ascontiguousarray(heads))):
        ends = sorted((head[1:5] + head[9:11], head[5:9] + head[11:13]))
        places[head[:1], *ends].append(place)
    begun = [each for each in places.values() if each[0] > 1000 and len(each) in (2, 6)]
    assert len(begun) > 500
    assert min(b - a for each in begun for a, b in pairwise(each)) > BATCH


def lifetimes(ruleset: str) -> dict[str, int]:
    """Memory, buckets and lifetimes of one of the exercise's own rulesets."""
    files = lab_ruleset(LAB.folder / "rulesets" / EXERCISE.id / ruleset, {}, TOPOLOGY)
    lines = [line for file in files if file.kind == "sysctl" for line in file.text.splitlines() if "=" in line]
    written = (line.replace("/", ".").removeprefix("net.netfilter.nf_conntrack_").split(" = ") for line in lines)
    return {**DEFAULTS, **{name: int(value) for name, value in written}}


def held(ruleset: str, *, most: bool) -> int:
    """Entries after ten seconds: those that live, and, of the most, those that have expired and still count."""
    rates, chosen = tunables(most=most), lifetimes(ruleset)
    seconds = (EXERCISE.state_packets or 0) / FIRST_FILLED
    living = rates["connections"] * min(seconds, chosen["tcp_timeout_time_wait"])
    living += rates["lookups"] * min(seconds, chosen["udp_timeout"])
    pausing = round(seconds * (40 + 20) + 100 * (LATE + chosen["tcp_timeout_time_wait"]))
    return round(living) + (pausing + chosen["buckets"] // 2 if most else 0)


@pytest.mark.parametrize(
    "ruleset", ["reference", "variants/a-second-more", "variants/more-buckets", "variants/other-file"]
)
def test_right_lifetimes_fit_into_the_memory_and_outlast_every_pause(ruleset: str) -> None:
    chosen, drawn = lifetimes(ruleset), tunables(most=True)
    assert held(ruleset, most=True) < 0.97 * chosen["max"]
    assert chosen["tcp_timeout_time_wait"] >= LATE > drawn["late_ms"] / 1000
    assert chosen["udp_timeout"] >= SILENT > drawn["silent_ms"] / 1000
    assert chosen["tcp_timeout_established"] >= IDLE > drawn["idle_ms"] / 1000


@pytest.mark.parametrize("ruleset", ["start", "variants/time-wait-alone", "variants/udp-alone", "variants/ten-seconds"])
def test_wrong_lifetimes_fill_the_table_whatever_is_drawn(ruleset: str) -> None:
    assert held(ruleset, most=False) > 1.03 * lifetimes(ruleset)["max"]


def test_a_lifetime_below_a_pause_is_too_short_whatever_is_drawn() -> None:
    least = tunables(most=False)
    assert lifetimes("variants/one-second")["tcp_timeout_time_wait"] < least["late_ms"] / 1000
    assert lifetimes("variants/two-seconds")["udp_timeout"] < least["silent_ms"] / 1000
    assert lifetimes("variants/every-timeout")["tcp_timeout_established"] < least["idle_ms"] / 1000
