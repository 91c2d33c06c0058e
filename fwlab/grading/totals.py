# SPDX-License-Identifier: GPL-2.0-or-later
"""The grades of a whole course: the labs' grades, weighed as course.yml says."""

import csv
import io
from collections.abc import Sequence

from fwlab.grading.course import Course
from fwlab.grading.grades import grade_class, number
from fwlab.grading.record import Grading
from fwlab.model.errors import BadInput


def totals_csv(gradings: Sequence[Grading], course: Course) -> str:
    """One row per student. A lab that a student did not hand in counts as zero; an open one leaves the total open."""
    labs = [grading.lab for grading in gradings]
    twice = next((lab for lab in labs if labs.count(lab) > 1), None)
    if twice is not None:
        raise BadInput(f"{twice} is there twice", "fwlab grades merge joins the parts of one lab")
    weights = {lab: course.lab(lab).weight for lab in labs}
    if not any(weights.values()):
        raise BadInput("every lab has the weight 0", "give one of them a weight in course.yml")
    found: dict[str, dict[str, float | None]] = {}
    for grading in gradings:
        for grade in grade_class(grading, course):
            found.setdefault(grade.student.id, {})[grading.lab] = grade.points
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["student", *labs, "total"])
    for student, points in sorted(found.items()):
        reached = [points.get(lab, 0.0) for lab in labs]
        total = None
        if None not in reached:
            weighed = sum(weights[lab] * (value or 0.0) for lab, value in zip(labs, reached, strict=True))
            total = weighed / sum(weights.values())
        writer.writerow([student, *(number(value) for value in reached), number(total)])
    return out.getvalue()
