# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of one grading: marks, record, measurements and report, written as verdicts come."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fwlab.grading.class_results import alike, record, write_class, write_record
from fwlab.grading.graded import Work
from fwlab.grading.grading_plan import GradingPlan
from fwlab.grading.known import Known
from fwlab.grading.marks import Records, table
from fwlab.grading.record import Grading
from fwlab.grading.similarity import Pair
from fwlab.model.results import Run
from fwlab.model.systems import several
from fwlab.report.files import write_report
from fwlab.report.model import build_model


class Saving:
    """Writes what is known of the works. `graded`: by lab, the works of this grading."""

    def __init__(self, plan: GradingPlan, records: Records, known: Known) -> None:
        self._plan, self._records, self._known = plan, records, known
        self.graded: dict[str, list[Work]] = {}
        self._tried = -1

    def begin(self, works: dict[str, list[Work]]) -> None:
        """Write marks for works that are not graded yet, and what was handed in."""
        self.graded = works
        for lab in works:
            self.marks(lab, None)
            if self._plan.submissions is not None:
                for folder in dict.fromkeys((self._folder(lab), self._plan.class_folder(lab))):
                    self._records.write(folder / "submissions.json", self._plan.submissions.document())

    def table(self, lab: str) -> str:
        """The marks as CSV, one row per work, graded or not."""
        return table(self.graded.get(lab, []), partial(self._known.of, lab), partial(self._known.remarks, lab))

    def marks(self, lab: str, run: Run | None, *, last: bool = False) -> None:
        """Write the marks and, of a class, the record and the measurements, so that it can be continued.

        run   of the session, if there is one
        last  nothing follows
        """
        context = self._plan.contexts[lab]
        system = context.topology.nodes["dut"].system
        name = f"marks-{system}.csv" if several(context.lab) else "marks.csv"
        self._records.write(self._folder(lab) / name, self.table(lab))
        if self._plan.submissions is None or run is None:
            return
        folder, whole = self._plan.class_folder(lab), self._known.whole(run)
        tried = sum(measured.refused is None or bool(measured.ruleset_hash) for measured in whole.exercises)
        if tried != self._tried or last:  # most of a class's rows need no machine, and change nothing
            self._tried = tried
            self._records.write(folder / "run.json", whole.model_dump_json(indent=1) + "\n")
            self._records.attempt(write_record, self._record(lab, run), folder)

    def end(self, lab: str, run: Run) -> None:
        """Write everything."""
        self._records.attempt(self._save_report, lab, run)
        self.marks(lab, run, last=True)
        if self._plan.submissions is not None:
            self._records.attempt(self._save_class, lab, run)

    def _record(self, lab: str, run: Run, pairs: Sequence[Pair] = ()) -> Grading:
        """The record of the works that are graded in this run or were taken over."""
        context, submissions = self._plan.contexts[lab], self._plan.submissions
        assert submissions is not None  # noqa: S101 - only of a class
        chosen = {work.name for work in self.graded.get(lab, [])} | {name for of, name in self._known.kept if of == lab}
        works = [work for work in self._plan.works[lab] if work.name in chosen]
        return record(context, submissions, works, self._known, run, pairs)

    def _save_class(self, lab: str, run: Run) -> None:
        context, folder = self._plan.contexts[lab], self._plan.class_folder(lab)
        grading = self._record(lab, run, alike(context, self._plan.works[lab]))
        write_record(grading, folder)
        write_class(grading, self._plan.course, folder)

    def _save_report(self, lab: str, run: Run) -> None:
        write_report(build_model(self._plan.contexts[lab].lab, self._known.whole(run)), self._folder(lab))

    def _folder(self, lab: str) -> Path:
        return self._plan.folder(lab)
