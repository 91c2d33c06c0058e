# SPDX-License-Identifier: GPL-2.0-or-later
"""What a student has measured: the newest figures of each case, and how long the next command will take.

reports/LAB/measured.json has the newest measurement of each case over all runs. A report holds one run; a question
about two cases may be asked of two runs. On the virtual testbed they agree.
"""

import json
import statistics
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import raw_results, read_document
from fwlab.measure.saved_runs import load_run, reports_folder
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.model.systems import several


def measured_path(project: Project, lab: Lab, system: str) -> Path:
    """The file; a lab for several systems has one of each."""
    name = f"measured-{system}.json" if several(lab) else "measured.json"
    return reports_folder(project, lab.id) / name


def keep_cases(project: Project, lab: Lab, run: Run) -> None:
    """Add the run's cases to those that were measured before, in place of older measurements of them.

    A case whose figure is in doubt, or whose ruleset was refused, replaces none.
    """
    path = measured_path(project, lab, run.dut.system)
    before: list[Measured] = []
    with suppress(BadInput):  # there is none yet, or it is damaged: start over
        earlier = load_run(path, lab.id)
        before = earlier.cases if _conditions(earlier) == _conditions(run) else []
    good = [case for case in run.cases if not (case.problems or case.unsaturated or case.refused)]
    new = {case.id for case in good}
    cases = [*(case for case in before if case.id not in new), *good]
    kept = run.model_copy(update={"cases": cases, "exercises": []})
    write_atomically(path, kept.model_dump_json(indent=1) + "\n")


def _conditions(run: Run) -> tuple[object, ...]:
    """What must be the same for cases of several runs to be kept together."""
    return run.testbed.name, run.testbed.clock, run.testbed.ns_per_instruction, run.dut.kernel


def case_runs(project: Project, lab: Lab) -> list[Run]:
    """What has been measured of the lab's cases, on each of its systems. Raises BadInput for a damaged file."""
    paths = [measured_path(project, lab, system) for system in lab.whole.needs.systems]
    return [load_run(path, lab.id) for path in paths if path.exists()]


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
    published = _durations(raw_results(project, f"{lab.id}/*"))
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
            run = json.loads(read_document(path))
            for one in [*run.get("cases", []), *run.get("exercises", [])]:
                if one["wall_s"] > 0:
                    found.setdefault(str(one["id"]), []).append(float(one["wall_s"]))
    return found
