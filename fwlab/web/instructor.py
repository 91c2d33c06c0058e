# SPDX-License-Identifier: GPL-2.0-or-later
"""A grading for its instructor, while it runs and afterwards: what is decided, what is not and why, and its pages.

All of it follows from the record that the grading writes, wherever its workers are.
"""

from dataclasses import dataclass
from pathlib import Path

from nicegui import run, ui

from fwlab.grading.class_files import class_page, predictions_of_class, student_page
from fwlab.grading.course import Course, grade_class
from fwlab.grading.record import FILE, Record, read_record
from fwlab.model.errors import BadInput
from fwlab.model.verdict import Outcome
from fwlab.web.view import trouble, words

EVERY_S = 3.0
#: The pages of a class, and its exports, run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'self'"
#: What an instructor takes away.
EXPORTS = {"marks.csv": "text/csv", "grades.csv": "text/csv", "similarity.csv": "text/csv", "junit.xml": "text/xml"}


@dataclass
class Classroom:
    """A grading's folder, and how verdicts become grades."""

    folder: Path
    course: Course
    _record: Record | None = None
    _file: tuple[int, int] | None = None

    def record(self) -> Record:
        """The record as it is now; only what was added is read. Raises BadInput."""
        try:
            facts = (self.folder / FILE).stat()
        except OSError as error:
            hint = "fwlab grade LAB --submissions DIR --results THIS-FOLDER"
            raise BadInput(f"{self.folder / FILE}: {error.strerror}", hint) from error
        before, self._file = self._file, (facts.st_ino, facts.st_size)
        if self._record is None or before is None or before[0] != facts.st_ino or before[1] > facts.st_size:
            self._record = read_record(self.folder)
        elif before != self._file:
            self._record.follow()
        return self._record

    def overview(self) -> str:
        """The page of the class. Raises BadInput."""
        grading = self.record().grading()
        return class_page(grading, self.course, grade_class(grading, self.course), grading.similar)

    def of_student(self, student: str) -> str | None:
        """The page of one student; None if there is none of that name. Raises BadInput."""
        grading = self.record().grading()
        found = next((one for one in grade_class(grading, self.course) if one.student.id == student), None)
        return student_page(grading, self.course, found, predictions_of_class(grading)) if found else None

    def export(self, name: str) -> Path | None:
        """One of the files that the grading has written; None if there is none of that name."""
        path = self.folder / name
        return path if name in EXPORTS and path.is_file() and not path.is_symlink() else None


def class_overview(classroom: Classroom) -> None:
    """Draw the page."""
    seen: list[object] = [None]

    @ui.refreshable
    def state() -> None:
        try:
            grading = classroom.record().grading()
        except BadInput as error:
            trouble(error)
            return
        total = len(grading.works)
        decided = sum(work.outcome is not None for work in grading.works)
        words("p", f"{grading.lab}: {decided} of {total} submissions are graded, of {len(grading.students)} students.")
        bar = ui.linear_progress(decided / max(total, 1), show_value=False)
        bar.props(f'aria-label="{decided} of {total} graded"')
        open_ones = [work for work in grading.works if work.outcome is Outcome.INCONCLUSIVE]
        if open_ones:
            words("h2", f"Inconclusive: {len(open_ones)}")
            words("p", "The same command with --resume measures these again, and nothing that was decided.", "soft")
            with ui.element("table").props('aria-label="Inconclusive"'), ui.element("tbody"):
                for work in open_ones:
                    with ui.element("tr"):
                        for text in (work.student, work.exercise, work.reason):
                            words("td", text)

    async def look() -> None:
        now = await run.io_bound(_size, classroom)
        if now != seen[0]:
            seen[0] = now
            state.refresh()

    state()
    words("h2", "The class")
    with ui.element("div").classes("row"):
        for name in EXPORTS:
            if classroom.export(name) is not None:
                ui.link(name, f"/class/{name}").props(f"download={name}")
        ui.link("the page by itself", "/class/overview", new_tab=True)
    page = ui.element("iframe").classes("found").props('title="The class"')

    def show() -> None:
        page.props["src"] = f"/class/overview?{_size(classroom)}"

    show()
    ui.button("Show what is new", on_click=show, color=None).props("outline no-caps")
    ui.timer(EVERY_S, look)


def _size(classroom: Classroom) -> int:
    try:
        return (classroom.folder / FILE).stat().st_size
    except OSError:
        return 0
