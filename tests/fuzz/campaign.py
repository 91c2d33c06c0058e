# SPDX-License-Identifier: GPL-2.0-or-later
"""Run one parser on many inputs and classify the outcomes."""

from __future__ import annotations

import contextlib
import re
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from fwlab.model.errors import BadInput

from .parsers import Parser

#: Inputs are small: a parser that needs more CPU time (s) for one hangs, or scales badly.
TIME_LIMIT_S = 10
#: How many defects are kept in full.
MAX_DEFECTS = 20
_STRANGE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


#: A defect: the index of its input, the input, and what was said.
Defect = dict[str, Any]


class TooSlow(BaseException):
    """A parser exceeded TIME_LIMIT_S. A BaseException, so that no parser catches it."""


def campaign(parser: Parser, count: int, seed: int, first: int = 0) -> tuple[Counter[str], dict[str, Defect]]:
    """Run the inputs `first` to `first + count - 1` of this seed. Returns outcomes, and defects by where they arose."""
    outcomes: Counter[str] = Counter()
    defects: dict[str, Defect] = {}
    warnings.simplefilter("error")  # numpy warns of overflow
    for index in range(first, first + count):
        given = parser.make(Random((seed << 40) + index))
        where, said = "", ""
        try:
            with _time_limit():
                outcome = parser.ask(given)
        except BadInput as refusal:
            outcome = "refused"
            where, said = _message_defect(refusal), refusal.message[:500]
        except (Exception, TooSlow) as error:  # noqa: BLE001 - each is a defect
            outcome = f"traceback: {type(error).__name__}"
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__} in {frame.name}, {frame.filename.rpartition('/')[2]}:{frame.lineno}"
            said = "".join(traceback.format_exception(error))[-3000:]
        if where and len(defects) < MAX_DEFECTS:
            defects.setdefault(where, {"index": index, "input": repr(given)[-4000:], "said": said})
        outcomes[outcome] += 1
    return outcomes, defects


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
