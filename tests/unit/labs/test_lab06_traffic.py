# SPDX-License-Identifier: GPL-2.0-or-later
"""lab06's payloads: queries are queries, and a pattern is where its case says."""

from __future__ import annotations

import pytest
from scapy.layers.dns import DNS

from fwlab.traffic.classes import classify
from tests.checkout import lab_named, tables

LAB = lab_named("lab06-payload")
NAMES = list(LAB.classes)


def test_queries_are_queries() -> None:
    frames = tables(LAB.id).table("names").frames
    payloads = {(NAMES[place], frame[42:]) for frame, place in zip(frames, classify(frames, LAB.classes), strict=True)}
    asked = {name: set() for name in ("asked", "mixed", "lookalike", "longer")}
    for name, payload in payloads:
        if name in asked:
            asked[name].add(DNS(payload).qd[0].qname)
    in_it = {name: {b"." + one.lower() for one in asked.pop(name)} for name in ("asked", "mixed")}
    assert [len(found) for found in in_it.values()] == [5, 3]
    for found in in_it.values():
        assert {b".foo.com.", b".www.foo.com."} < found
        assert all(name.endswith(b".foo.com.") for name in found)
    assert not any(b".foo.com." in b"." + name for name in asked["lookalike"])
    assert {b"thatfoo.com."} < asked["lookalike"]
    assert {b"foo.com.org."} < asked["longer"]


def test_mixed_case_never_spells_foo_in_small_letters() -> None:
    frames = tables(LAB.id).table("names").frames
    mixed = {
        bytes(frame[54:71])
        for frame, place in zip(frames, classify(frames, LAB.classes), strict=True)
        if NAMES[place] == "mixed"
    }
    assert len(mixed) == 48
    assert not any(b"\3foo" in name for name in mixed)


@pytest.mark.parametrize("case", [case for case in LAB.cases.values() if case.ruleset == "string"], ids=lambda c: c.id)
def test_a_pattern_is_in_the_packets_of_its_case_or_not(case) -> None:
    """Only the cases `-at-` have the word in their packets, and there it ends within the frame."""
    payload = tables(LAB.id).table(case.traffic).frames[0][42:]
    pattern = str(case.parameters.get("pattern", "#")).replace("|0000ff0001|", "\0\0\xff\0\1")
    place = payload.find(pattern.encode("latin-1"))
    assert place == (int(case.id.rpartition("-")[2]) if "-at-" in case.id else -1)
