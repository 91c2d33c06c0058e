# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress on a terminal and elsewhere shows the text of events literally."""

import io

import pytest
from rich.console import Console

from fwlab.model.events import ItemFinished, ItemPhase, ItemStarted, PlanMade, StepStarted, TerminalBack, TerminalLent
from fwlab.report.progress import listener


@pytest.mark.parametrize("terminal", [True, False])
def test_words_are_literal_and_a_terminal_alone_shows_what_is_being_done(terminal: bool) -> None:
    out = io.StringIO()
    with listener(Console(file=out, force_terminal=terminal, width=100)) as emit:
        emit(PlanMade(1))
        emit(ItemStarted("ex1"))
        emit(ItemPhase("ex1", "after flood"))
        emit(ItemFinished("ex1", "refused: [red]x[/blue].nft: no", False))
    assert "refused: [red]x[/blue].nft: no" in out.getvalue()
    assert ("ex1: after flood" in out.getvalue()) is terminal


def test_a_log_counts_where_there_is_something_to_count() -> None:
    """A check measures a baseline and then an exercise: two plans of one."""
    out = io.StringIO()
    with listener(Console(file=out, width=100)) as emit:
        for items in (1, 2):
            emit(PlanMade(items))
            for number in range(items):
                emit(ItemFinished(f"case-{number}", "1 kpps", True))
    assert out.getvalue().splitlines() == ["case-0: 1 kpps", "[1/2] case-0: 1 kpps", "[2/2] case-1: 1 kpps"]


def test_nothing_is_drawn_while_the_terminal_is_lent() -> None:
    out = io.StringIO()
    with listener(Console(file=out, force_terminal=True, width=100)) as emit:
        emit(StepStarted("loading"))
        emit(TerminalLent())
        before = out.getvalue()
        emit(StepStarted("unseen"))
        assert out.getvalue() == before
        emit(TerminalBack())
        assert "unseen" in out.getvalue()[len(before) :]
