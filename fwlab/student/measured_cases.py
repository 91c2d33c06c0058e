# SPDX-License-Identifier: GPL-2.0-or-later
"""The newest measurement of each case, over all runs of a student: reports/LAB/measured.json.

A report holds one run. A question about two cases may be asked of two runs; on the virtual testbed they agree.
"""

from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project
from fwlab.measure.saved_runs import load_run, reports_folder
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.model.systems import several

STEM = "measured"


def measured_path(project: Project, lab: Lab, system: str) -> Path:
    """The file; a lab for several systems has one of each."""
    name = f"{STEM}-{system}.json" if several(lab) else f"{STEM}.json"
    return reports_folder(project, lab.id) / name


def keep_cases(project: Project, lab: Lab, run: Run) -> None:
    """Add the run's cases to those that were measured before, in place of older measurements of them.

    A case whose figure is in doubt, or whose ruleset was refused, replaces none.
    """
    path = measured_path(project, lab, run.dut.system)
    try:
        before: list[Measured] = _comparable(load_run(path, lab.id), run)
    except BadInput:  # there is none yet, or it is damaged: begin anew
        before = []
    good = [case for case in run.cases if not (case.problems or case.unsaturated or case.refused)]
    new = {case.id for case in good}
    cases = [*(case for case in before if case.id not in new), *good]
    kept = run.model_copy(update={"cases": cases, "exercises": []})
    write_atomically(path, kept.model_dump_json(indent=1) + "\n")


def _comparable(before: Run, run: Run) -> list[Measured]:
    """Earlier cases, if they were measured on the same kind of DUT."""

    def conditions(one: Run) -> tuple[object, ...]:
        return one.testbed.name, one.testbed.clock, one.testbed.ns_per_instruction, one.dut.kernel

    return before.cases if conditions(before) == conditions(run) else []


def case_runs(project: Project, lab: Lab) -> list[Run]:
    """What has been measured of the lab's cases, on each of its systems. Raises BadInput for a damaged file."""
    paths = [measured_path(project, lab, system) for system in lab.whole.needs.systems]
    return [load_run(path, lab.id) for path in paths if path.exists()]
