# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a command will take, told before it starts: from what the same items took before."""

import json
import statistics
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fwlab.checkout.project import Project
from fwlab.measure.saved_runs import LARGEST_FILE, reports_folder
from fwlab.model.lab import Lab

#: Seconds of an item that was never measured anywhere.
USUAL_S = 15.0


@dataclass(frozen=True)
class Estimate:
    """Seconds, whether they come from this host's own measurements, and whether some item was never measured at all."""

    seconds: float
    own: bool
    guessed: bool = False

    def __str__(self) -> str:
        source = "as before" if self.own else "on the authors' host; a slower or busier one takes longer"
        if self.guessed:
            source = "a guess: not all of it was measured before"
        return f"about {rounded(self.seconds)} ({source})"


def rounded(seconds: float) -> str:
    """Seconds in words, no more exact than an estimate is: "20 s", "3 minutes"."""
    if seconds < 90:
        return f"{max(10, round(seconds / 10) * 10)} s"
    minutes = seconds / 60
    return f"{round(minutes)} minutes" if minutes < 20 else f"{round(minutes / 5) * 5} minutes"


def estimate(project: Project, lab: Lab, items: Iterable[str]) -> Estimate:
    """How long these cases and exercises will take, once the machines run."""
    reports = reports_folder(project, lab.id)
    own = _durations([*reports.glob("measured*.json"), *reports.glob("run*.json"), *reports.glob("check/run*.json")])
    published = _durations(sorted((project.root / "results" / lab.id).glob("*.json")))
    total, all_own, guessed = 0.0, True, False
    for item in items:
        times = own.get(item)
        all_own &= times is not None
        known = times or published.get(item)
        guessed |= known is None
        total += statistics.median(known or [USUAL_S])
    return Estimate(total, all_own, guessed)


def _durations(paths: Iterable[Path]) -> dict[str, list[float]]:
    """By item, the seconds that it took each time. A file that is not a run is passed over: this is only a guess."""
    found: dict[str, list[float]] = {}
    for path in paths:
        with suppress(OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            if path.stat().st_size > LARGEST_FILE:
                continue
            run = json.loads(path.read_bytes())
            for one in [*run.get("cases", []), *run.get("exercises", [])]:
                if one["wall_s"] > 0:
                    found.setdefault(str(one["id"]), []).append(float(one["wall_s"]))
    return found
