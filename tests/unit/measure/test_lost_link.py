# SPDX-License-Identifier: GPL-2.0-or-later
"""A host that loses a link during a run: what was measured stays, the rest is inconclusive, and the reason is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.measure.session import Session
from fwlab.model.errors import CannotMeasure
from tests.fakes.factories import a_run
from tests.unit.measure.test_measured_again import GOOD, TASK, Backup, Scripted

LOST = CannotMeasure("this host lost a link of lab03-ipset: the VF 0000:01:10.0 of enp1s0 is gone", "vagrant destroy")
SAID = f"{LOST.message}; next: {LOST.hint}"
SILENT = {"trials": [], "problems": ["the DUT received nothing"]}


@pytest.mark.parametrize("found", [CannotMeasure("dut: no answer within 60 s"), SILENT], ids=["error", "silence"])
def test_a_lost_link_ends_the_session_and_is_not_the_rulesets_fault(found: dict | Exception) -> None:
    measurer, backup = Scripted(GOOD, found, GOOD), Backup(5)
    session = Session(None, measurer, backup, a_run([]), Path("none"), lambda _event: None, lambda: LOST)
    session.measure_cases([TASK, TASK, TASK])
    first, second, third = session.run.cases
    assert first.problems == []
    assert (second.problems, second.lost) == ([SAID], [])
    assert third.problems == [SAID]
    assert (measurer.left, backup.times) == (1, 5)


def test_a_link_that_is_there_changes_nothing() -> None:
    session = Session(None, Scripted(SILENT, SILENT), Backup(), a_run([]), Path("none"), lambda _event: None)
    session.measure_cases([TASK])
    assert session.run.cases[0].problems == SILENT["problems"]
