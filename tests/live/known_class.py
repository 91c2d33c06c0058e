# SPDX-License-Identifier: GPL-2.0-or-later
"""Grade a class with known marks in one run on lab03's machines.

    python -m tests.live.known_class make DIR        write DIR/class and DIR/expected.json
    python -m tests.live.known_class compare DIR [MARKS.CSV]
    python -m tests.live.known_class run DIR [OUT.json.gz] [--interrupt] [PYTEST WORDS...]
        make, grade, compare; save the result in OUT
    --students N     a multiple of 30 (default: 30)

Of thirty students, 10 hand in references and right variants, 6 mistakes and wrong variants, 4 starts, 5 cheats and 5
hostile files, in a fixed random order. Of more students, each file is that of another variant or exercise as long as
there are any; they hand in folders and archives in turn. The class is graded on the machines of `--machines LAB` if
given, else on the lab's own.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from fwlab.checkout.project import Project, find_project, load_topology
from fwlab.checkout.raw_results import write_document
from fwlab.grading.lab_rulesets import load_variants, variant_folder
from fwlab.measure.labs import load_lab
from fwlab.measure.provenance import commit
from fwlab.model.lab import Exercise, Lab
from fwlab.model.variants import REFUSED
from fwlab.rulesets.files import rendered

from .class_of_five import hand_in
from .interrupted import grade_in_two_parts
from .submissions import CHEATS, HOSTILE

LAB = "lab03-ipset"
#: What a larger class hands in, in turn.
FORMS = ("folder", "zip", "tar.gz")
#: Attacks whose effect does not depend on the host's memory.
ATTACKS = ("half-a-letter", "log-of-the-flood", "redirect", "jump-bomb", "no-text")
#: Cheats that end during the flood. If that happens in a trial, the trials are too far apart to be judged.
EXPIRES = ("elements-that-expire",)
#: The verdicts of whatever must not pass, but may keep itself from being judged.
UNDECIDED = ["fail", "inconclusive"]

Submission = tuple[str, str, dict[str, str], list[str]]  # description, exercise, files, allowed verdicts


def submissions(project: Project, lab: Lab, students: int) -> list[Submission]:
    times = students // 30
    references = _in_turn(_part(project, lab, exercise, "reference", ["pass"]) for exercise in lab.exercises)
    mistakes = _in_turn(_part(project, lab, exercise, "mistake", ["fail"]) for exercise in lab.exercises)
    starts = _in_turn(_part(project, lab, exercise, "start", ["fail"]) for exercise in lab.exercises)
    right, wrong = (_variants(project, lab, kind) for kind in ("right", "wrong"))
    return [
        *_first(10 * times, _alternately(references, right)),
        *_first(6 * times, _alternately(mistakes, wrong)),
        *_first(4 * times, starts),
        *[(name, *CHEATS[name], UNDECIDED if name in EXPIRES else ["fail"]) for name in CHEATS] * times,
        *[(name, *HOSTILE[name], UNDECIDED) for name in ATTACKS] * times,
    ]


def _part(project: Project, lab: Lab, exercise: Exercise, part: str, verdicts: list[str]) -> Submission:
    folder = lab.folder / "rulesets" / exercise.id / part
    return part, exercise.id, dict(rendered(folder, exercise.parameters, load_topology(project))), verdicts


def _variants(project: Project, lab: Lab, kind: str) -> list[Submission]:
    """The first variant of each exercise, then the second, and so on, without those refused before loading."""
    by_exercise = []
    for exercise in lab.exercises:
        variants = load_variants(project, lab, exercise)
        loaded = [name for name, wrong in variants.wrong.items() if REFUSED not in wrong.fails]
        names = list(variants.right) if kind == "right" else loaded
        verdicts = ["pass"] if kind == "right" else ["fail"]
        row = []
        for name in names:
            folder = variant_folder(lab, exercise, name)
            files = dict(rendered(folder, exercise.parameters, load_topology(project)))
            row.append((f"{kind}-{name}", exercise.id, files, verdicts))
        by_exercise.append(row)
    return [item for rank in itertools.zip_longest(*by_exercise) for item in rank if item is not None]


def _in_turn(items: Iterable[Submission]) -> Iterator[Submission]:
    return itertools.cycle(list(items))


def _alternately(first: Iterator[Submission], second: list[Submission]) -> Iterator[Submission]:
    others = iter(second)
    while True:
        yield next(first)
        other = next(others, None)
        if other is not None:
            yield other


def _first(count: int, items: Iterator[Submission]) -> list[Submission]:
    return list(itertools.islice(items, count))


def make(top: Path, students: int = 30) -> dict[str, dict]:
    """Write the class. Returns by student the exercise and the allowed verdicts."""
    project = find_project()
    lab = load_lab(project, LAB)
    every = submissions(project, lab, students)
    assert len(every) == students, len(every)
    random.Random(30).shuffle(every)
    expected = {}
    for number, (what, exercise, files, verdicts) in enumerate(every, 1):
        student = f"student-{number:0{len(str(students))}}"
        a_zip_can = all(name.isascii() for name in files)  # one file's name is not even UTF-8
        form = FORMS[number % len(FORMS)] if students > 30 and a_zip_can else "folder"
        hand_in(top / "class", student, form, {f"{exercise}/{name}": text for name, text in files.items()})
        expected[student] = {"exercise": exercise, "what": what, "verdicts": verdicts}
    (top / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    return expected


def compare(expected: dict[str, dict], marks: Path) -> list[dict]:
    """A row per student, with `right`. An exercise that was not handed in must have failed."""
    rows = list(csv.DictReader(marks.open(newline="")))
    found = {(row["who"], row["exercise"]): row for row in rows}
    told = []
    for student, wanted in expected.items():
        row = found.pop((student, wanted["exercise"]), {"verdict": "no mark", "reason": ""})
        told.append({"student": student, **wanted, "verdict": row["verdict"], "reason": row["reason"]})
    told += [
        {"student": who, "exercise": exercise, "what": "not handed in", "verdicts": ["fail"], **_outcome(row)}
        for (who, exercise), row in found.items()
    ]
    return [{**row, "right": row["verdict"] in row["verdicts"]} for row in told]


def _outcome(row: dict) -> dict:
    return {"verdict": row["verdict"], "reason": row["reason"]}


def show(rows: list[dict]) -> int:
    handed_in = [row for row in rows if row["what"] != "not handed in"]
    for row in handed_in:
        mark = "  " if row["right"] else "!!"
        what = f"{row['student']} {row['exercise']:<18} {row['what']:<26}"
        print(f"{mark} {what} {row['verdict']:<13} {row['reason'][:90]}")
    wrong = [row for row in rows if not row["right"]]
    print(f"{len(rows) - len(wrong)} of {len(rows)} marks as expected, {len(handed_in)} of them for submissions")
    return 1 if wrong else 0


def run(top: Path, out: Path | None, words: list[str], *, students: int, interrupt: bool) -> int:
    expected, marks = make(top, students), find_project().root / "reports" / LAB / "grading" / "marks.csv"
    command = [sys.executable, "-m", "pytest", "--testinfra", "--lab", LAB, f"--submissions={top / 'class'}", "-q"]
    command += ["--further", "-p", "no:cacheprovider", *words]
    began = time.monotonic()
    if interrupt:
        marks.unlink(missing_ok=True)
        # Whoever handed nothing in is judged in no time. So half of all exercises are about half of the work.
        parts = grade_in_two_parts(command, marks, len(expected) * len(load_lab(find_project(), LAB).exercises) // 2)
        told = {"parts_s": parts.seconds, "exit_codes": parts.exit_codes}
        told["judged_when_interrupted"] = sum(verdict in ("pass", "fail") for verdict in parts.half.values())
    else:
        code = subprocess.run(command).returncode
        told = {"exit_code": code}
    seconds = round(time.monotonic() - began, 1)
    rows = compare(expected, marks)
    if out is not None:
        document = {
            "what": f"a class of {students}, "
            + ("interrupted in the middle and continued" if interrupt else "graded in one run"),
            "date": datetime.date.today().isoformat(),
            "commit": commit(find_project()),
            "load_average": os.getloadavg(),
            "seconds": seconds,
            **told,
            "marks": rows,
        }
        write_document(out, json.dumps(document, indent=1) + "\n")
    print(f"graded in {seconds:.0f} s; {told}")
    return show(rows) or (1 if interrupt and not parts.was_interrupted else 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("make", "compare", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--interrupt", action="store_true", help="run: in the middle, and continue with --resume")
    parser.add_argument("--students", type=int, default=30)
    told, words = parser.parse_known_args()
    if told.action == "make":
        make(told.folder, told.students)
        return 0
    if told.action == "run":
        return run(told.folder.resolve(), told.file, words, students=told.students, interrupt=told.interrupt)
    marks = told.file or find_project().root / "reports" / LAB / "grading" / "marks.csv"
    return show(compare(json.loads((told.folder / "expected.json").read_text()), marks))


if __name__ == "__main__":
    sys.exit(main())
