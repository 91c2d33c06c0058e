# SPDX-License-Identifier: GPL-2.0-or-later
"""Run one parser on many inputs and classify the outcomes."""

from __future__ import annotations

import contextlib
import re
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fwlab.model.errors import BadInput

from .parsers import Parser

#: Inputs are small: a parser that needs more CPU time (s) for one hangs, or scales badly.
TIME_LIMIT_S = 10
#: How many defects are kept in full.
MOST_DEFECTS = 20
_STRANGE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass
class Found:
    """What a campaign found. `outcomes` counts; `defects` are keyed by where they arose."""

    count: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    defects: dict[str, dict[str, Any]] = field(default_factory=dict)
    traced: int = 0


class TooSlow(BaseException):
    """A parser exceeded TIME_LIMIT_S. A BaseException, so that no parser catches it."""


def campaign(parser: Parser, count: int, seed: int, first: int = 0) -> Found:
    """Run the inputs `first` to `first + count - 1` of this seed."""
    found, begin = Found(), time.monotonic()
    warnings.simplefilter("error")  # numpy warns of overflow
    for index in range(first, first + count):
        given = parser.make(Random((seed << 40) + index))
        try:
            with _time_limit():
                outcome = parser.ask(given)
        except BadInput as refusal:
            outcome = "refused"
            wrong = _message_defect(refusal)
            if wrong:
                _note(found, wrong, index, given, refusal.message[:500])
        except (Exception, TooSlow) as error:  # noqa: BLE001 - each is a defect
            outcome = f"traceback: {type(error).__name__}"
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__} in {frame.name}, {frame.filename.rpartition('/')[2]}:{frame.lineno}"
            _note(found, where, index, given, "".join(traceback.format_exception(error))[-3000:])
        found.outcomes[outcome] += 1
    found.count, found.seconds = count, time.monotonic() - begin
    return found


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def expire(*_: object) -> None:
        raise TooSlow(f"more than {TIME_LIMIT_S} s of CPU time")

    before = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _message_defect(refusal: BadInput) -> str:
    """What is wrong with the message itself: it must be short, printable and have a hint. Empty if it is fine."""
    if not refusal.message or not refusal.hint:
        return "an error without a message or a hint"
    if _STRANGE.search(refusal.message + refusal.hint):
        return "a control character in a message"
    return "a message of several pages" if len(refusal.message) > 5000 else ""


def _note(found: Found, where: str, index: int, given: Any, words: str) -> None:
    found.traced += 1
    if where not in found.defects and len(found.defects) < MOST_DEFECTS:
        found.defects[where] = {"index": index, "input": repr(given)[-4000:], "said": words}
