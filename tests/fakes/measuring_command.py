# SPDX-License-Identifier: GPL-2.0-or-later
"""The `fwlab` command in a process of its own, whose session measures nothing, tells it, and can be made to wait.

Environment: WAIT, the seconds that a measurement takes; ENDED, a file that is written when the session is over.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fwlab.cli import main
from fwlab.model.events import (
    EventSink,
    ItemFinished,
    ItemPhase,
    ItemStarted,
    PlanMade,
    StepStarted,
    TrialsMade,
    Warned,
)
from tests import ROOT
from tests.fakes.student_checkout import Measuring

#: What stands for `fwlab`.
COMMAND = (
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.fakes.measuring_command import run; run()",
)


class Telling(Measuring):
    """A session that tells what it does."""

    @contextlib.contextmanager
    def open(self, _context: object, tell: EventSink) -> Iterator[Telling]:
        self._tell = tell
        tell(StepStarted("vagrant up"))
        try:
            with super().open():
                yield self
        finally:
            if marker := os.environ.get("ENDED"):
                Path(marker).write_text("the session is over")

    def measure_cases(self, specs: list) -> None:
        super().measure_cases(self._told(specs, 300_000))

    def measure_exercises(self, specs: list) -> None:
        self._tell(Warned("<b>a warning</b>"))
        super().measure_exercises(self._told(specs, 250_000))

    def _told(self, specs: list, pps: float) -> list:
        self._tell(PlanMade(len(specs)))
        for spec in specs:
            self._tell(ItemStarted(spec.id))
            self._tell(ItemPhase(spec.id, "trials"))
            time.sleep(float(os.environ.get("WAIT", "0")))
            self._tell(TrialsMade(spec.id, "capacity", (pps, pps)))
            self._tell(ItemFinished(spec.id, f"{pps / 1000:g} kpps", True, {"capacity": pps}))
        return specs


def run() -> None:
    """Run the command line with this session."""
    main.open_session = Telling().open
    sys.argv[0] = "fwlab"
    main.main()
