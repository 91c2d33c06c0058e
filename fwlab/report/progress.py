# SPDX-License-Identifier: GPL-2.0-or-later
"""Show progress events: a bar on a terminal, plain lines elsewhere. Callers print to standard error."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from fwlab.model.events import (
    BoundsNarrowed,
    Event,
    EventSink,
    ItemFinished,
    ItemLeftOut,
    ItemPhase,
    ItemStarted,
    LogLine,
    MachinesBusy,
    PlanMade,
    StepStarted,
    TerminalBack,
    TerminalLent,
    Warned,
    document,
)


@contextlib.contextmanager
def listener(
    console: Console, *, verbose: bool = False, announce: Callable[[str], None] | None = None
) -> Iterator[EventSink]:
    """A listener that prints to `console`. `announce`, if given, prints what must be seen at once, even where output is
    captured; `verbose` also shows log lines."""
    if console.is_terminal:
        with _bar(console) as bar:
            yield _OnTerminal(bar, verbose, announce)
    else:
        yield _Plain(console, verbose, announce)


def json_lines(stream: TextIO) -> EventSink:
    """A listener that writes each event as one line of JSON, at once."""

    def tell(event: Event) -> None:
        stream.write(json.dumps(document(event)) + "\n")
        stream.flush()

    return tell


def _print_to(console: Console) -> Callable[[str], None]:
    return lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)


def _bar(console: Console) -> Progress:
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True)


class _OnTerminal:
    def __init__(self, bar: Progress, verbose: bool, announce: Callable[[str], None] | None) -> None:
        self._bar, self._verbose, self._announce = bar, verbose, announce or _print_to(bar.console)
        self._task = bar.add_task("", total=None)

    def __call__(self, event: Event) -> None:
        match event:
            case StepStarted(what):
                self._bar.update(self._task, description=what, total=None, completed=0)
            case Warned(text):
                self._announce(text)
            case MachinesBusy(machines):
                self._announce(str(event))
                self._bar.update(self._task, description=f"waiting for {machines}")
            case LogLine(line) if self._verbose:
                self._bar.console.print(line, markup=False, highlight=False)
            case PlanMade(items):
                self._bar.update(self._task, total=items, completed=0)
            case ItemStarted(item):
                self._bar.update(self._task, description=item)
            case ItemPhase(item, phase):
                self._bar.update(self._task, description=f"{item}: {phase}")
            case BoundsNarrowed():
                self._bar.update(self._task, description=str(event))
            case ItemLeftOut(item, why):
                self._bar.console.print(_line(item, f"left out: {why}", ok=False))
            case ItemFinished(item, words, ok):
                self._bar.console.print(_line(item, words, ok))
                self._bar.advance(self._task)
            case TerminalLent():
                self._bar.stop()
            case TerminalBack():
                self._bar.start()


class _Plain:
    def __init__(self, console: Console, verbose: bool, announce: Callable[[str], None] | None) -> None:
        self._console, self._verbose, self._announce = console, verbose, announce or _print_to(console)
        self._items = self._done = 0

    def __call__(self, event: Event) -> None:
        match event:
            case StepStarted(what):
                self._console.print(f"{what} ...", markup=False, highlight=False)
            case Warned(text):
                self._announce(text)
            case MachinesBusy():
                self._announce(str(event))
            case LogLine(line) if self._verbose:
                self._console.print(line, markup=False, highlight=False)
            case PlanMade(items):
                self._items, self._done = items, 0
            case BoundsNarrowed():
                self._console.print(str(event), markup=False, highlight=False, soft_wrap=True)
            case ItemLeftOut(item, why):
                self._console.print(f"{item}: left out: {why}", markup=False, highlight=False, soft_wrap=True)
            case ItemFinished(item, words, _):
                self._done += 1
                place = f"[{self._done}/{self._items}] " if self._items > 1 else ""
                self._console.print(f"{place}{item}: {words}", markup=False, highlight=False)


def _line(item: str, words: str, ok: bool) -> Text:
    """Built without markup: `words` may quote a student's file, whose brackets must not be interpreted."""
    return Text.assemble((item, "green" if ok else "yellow"), "  ", words)
