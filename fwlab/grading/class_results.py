# SPDX-License-Identifier: GPL-2.0-or-later
"""Grades, grade books and pages of a class, all made from the record of its grading."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.grading.class_pages import class_page, student_page
from fwlab.grading.course import Course
from fwlab.grading.grade_files import junit, results_json
from fwlab.grading.graded import Work
from fwlab.grading.grades import grade_class, grades_csv
from fwlab.grading.record import Grading, content_of
from fwlab.grading.similarity import Pair, similar, similarity_csv, statements
from fwlab.grading.submissions import told
from fwlab.measure.context import RunContext
from fwlab.model.errors import FwlabError
from fwlab.model.lab import Exercise
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import lab_ruleset

Write = Callable[[Path, str], object]


def alike(context: RunContext, works: Sequence[Work]) -> list[Pair]:
    """The similar submissions of the class, exercise by exercise."""
    pairs: list[Pair] = []
    for exercise in context.lab.whole.exercises:
        own = [work for work in works if work.exercise.id == exercise.id and work.handed_in and work.handed_in.files]
        said, contents, starts = {}, {}, {}
        for work in own:
            start = json.dumps(work.exercise.parameters)  # an individual task has a start of its own
            if start not in starts:
                starts[start] = statements(_texts(partial(_start, context, work.exercise)))
            assert work.handed_in is not None  # noqa: S101 - see above
            texts = [data.decode(errors="replace") for _, data in work.handed_in.again()]
            said[work.who] = statements(texts) - starts[start]
            contents[work.who] = content_of(told(work.handed_in))
        pairs += similar(exercise.id, said, contents)
    return pairs


def _start(context: RunContext, exercise: Exercise) -> list[RulesetFile]:
    return lab_ruleset(context.lab.folder / "rulesets" / exercise.id / "start", exercise.parameters, context.topology)


def _texts(read: Callable[[], Sequence[RulesetFile]]) -> list[str]:
    """The texts of a ruleset; none if it is not one."""
    try:
        return [file.text for file in read()]
    except FwlabError:
        return []


def write_class(grading: Grading, course: Course, folder: Path, write: Write = write_atomically) -> None:
    """Write everything that follows from the record: grades, grade books and pages."""
    grades = grade_class(grading, course)
    files: Mapping[str, str] = {
        "grades.csv": grades_csv(grading, course),
        "junit.xml": junit(grading),
        "similarity.csv": similarity_csv(grading.similar),
        "class.html": class_page(grading, course, grades, grading.similar),
    }
    for name, text in files.items():
        write(folder / name, text)
    for grade in grades:
        own = folder / "students" / grade.student.id
        write(own / "index.html", student_page(grading, course, grade))
        write(own / "results.json", results_json(grading, course, grade))
