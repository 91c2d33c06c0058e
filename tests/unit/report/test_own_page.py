# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of prices: what it shows of the document, and that it contains everything that it needs."""

from __future__ import annotations

from fwlab.report.own_page import page

CLASS = {
    "decided_by": "-A FORWARD -s 10.0.0.1/32 -j DROP <b>", "fate": "dropped", "instructions": 9120.0,
    "packets_per_second": 109649, "rules_add": 70.0, "compared_with": 1, "share": 0.75, "stretches": [],
}  # fmt: skip
PART = {"from": "FORWARD 1: x", "rules": 1, "instructions": 70.0}
DOCUMENT = {
    "kernel": "6.1", "rules": 2, "reached": 1, "not_reached": [{"rule": "-A FORWARD -j DROP", "decided_by": None}],
    "classes": [CLASS], "mean_by_counters": 9120.0, "mean_packets_per_second": 109649,
    "where": {"share": 0.75, "stretches": [PART, {**PART, "instructions": -3.0}]},
    "forms": [
        {"form": "as given", "mean": 9120.0, "dearest": 9500.0, "other_classes": 0},
        {"form": "nft --optimize", "reason": "it said no"},
    ],
}  # fmt: skip


def test_the_page_shows_classes_bars_forms_and_changes_and_loads_nothing() -> None:
    made = page("my.rules", DOCUMENT, "per packet", ["order: -3.0% instructions"], CLASS, {"tun_get_user;ip_rcv": 9})
    for shown in (
        "109,649",
        "&lt;b&gt;",
        "FORWARD 1: x",
        "width: 0",
        "it said no",
        "order: -3.0%",
        "ip_rcv",
        "9 samples",
    ):
        assert shown in made, shown
    assert "<script" not in made
    assert "src=" not in made


def test_parts_that_were_not_asked_for_are_left_out() -> None:
    plain = {name: value for name, value in DOCUMENT.items() if name != "forms"}
    made = page("my.rules", {**plain, "not_reached": []}, "per packet", None, None, {})
    assert "other forms" not in made
    assert "Changes" not in made
    assert "<svg" not in made
