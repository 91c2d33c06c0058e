# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the same submission gets the same mark every time: one class, all of whose students hand in the same files.

    python -m tests.live.equal_marks DIR OUT.json.gz [--students N] [--seeds N] [--busy] [WORDS FOR PYTEST...]

Each student hands in one right and one wrong solution of lab03. With --busy, one process per core keeps the host
busy. With --seeds, the class is graded that often, each time with other traffic. OUT holds every mark and figure. If
OUT exists, its gradings are counted too, so that a busy half and an idle half make one result, or one set of machines
and several (`--workers 2`). Exit code: 0 if all marks are equal, otherwise 1.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fwlab.checkout.project import find_project, load_topology
from fwlab.checkout.raw_results import read_document, write_document
from fwlab.measure.labs import load_lab
from fwlab.measure.provenance import commit
from fwlab.rulesets.files import rendered

LAB = "lab03-ipset"
#: Exercise, which of the lab's own rulesets, and the mark that it must get.
HANDED_IN = (("ex3-ipset", "reference", "pass"), ("ex1-one-host", "mistake", "fail"))
BURN = "while True: pass"


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Keep every core busy with one process while this context is open."""
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(os.cpu_count() or 1) if wanted]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def make(top: Path, students: int) -> Path:
    """Write the class's folder below `top`, which must not have one."""
    project = find_project()
    lab = load_lab(project, LAB)
    for number in range(1, students + 1):
        for exercise_id, part, _ in HANDED_IN:
            exercise = next(item for item in lab.exercises if item.id == exercise_id)
            folder = top / "class" / f"student-{number:02}" / exercise_id
            folder.mkdir(parents=True)
            source = lab.folder / "rulesets" / exercise_id / part
            for name, text in dict(rendered(source, exercise.parameters, load_topology(project))).items():
                (folder / name).write_text(text)
    return top / "class"


def grade(folder: Path, is_busy: bool, words: list[str]) -> dict:
    """Grade the whole class once. Returns marks, load average and what was measured."""
    project = find_project()
    command = [sys.executable, "-m", "pytest", "--testinfra", "--lab", LAB, f"--submissions={folder}", "-q"]
    began = time.monotonic()
    with busy(is_busy):
        code = subprocess.run([*command, "-p", "no:cacheprovider", *words]).returncode
        load = os.getloadavg()
    reports = project.root / "reports" / LAB / "grading"
    wanted = {exercise for exercise, _, _ in HANDED_IN}
    rows = [row for row in csv.DictReader((reports / "marks.csv").open(newline="")) if row["exercise"] in wanted]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(project),
        "busy": is_busy,
        "words": words,
        "load_average": load,
        "seconds": round(time.monotonic() - began, 1),
        "exit_code": code,
        "marks": [{key: row[key] for key in ("who", "exercise", "verdict", "passed", "checks")} for row in rows],
        "measured": json.loads((reports / "run.json").read_text())["exercises"],
    }


def show(gradings: list[dict]) -> int:
    unequal = 0
    for exercise, part, verdict in HANDED_IN:
        marks = [mark for grading in gradings for mark in grading["marks"] if mark["exercise"] == exercise]
        equal = [mark for mark in marks if mark["verdict"] == verdict]
        loaded = sum(len(grading["marks"]) for grading in gradings if grading["busy"]) // len(HANDED_IN)
        print(f"{exercise} {part}: {len(equal)} of {len(marks)} gradings say {verdict}; {loaded} on a busy host")
        unequal += len(marks) - len(equal)
    return 1 if unequal else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--busy", action="store_true")
    told, words = parser.parse_known_args()
    earlier = json.loads(read_document(told.out))["gradings"] if told.out.is_file() else []
    folder = make(told.folder.resolve(), told.students)
    drawn = [[f"--traffic-seed={seed}"] for seed in range(1, told.seeds + 1)] or [[]]
    gradings = [*earlier, *(grade(folder, told.busy, [*words, *seed]) for seed in drawn)]
    document = {"what": "the same submission, graded again and again", "handed_in": HANDED_IN, "gradings": gradings}
    write_document(told.out, json.dumps(document, indent=1) + "\n")
    return show(gradings)


if __name__ == "__main__":
    sys.exit(main())
