# SPDX-License-Identifier: GPL-2.0-or-later
"""Individual tasks of lab03, graded: two students solve their own, a third hands in a copy of the first one's files.

python -m tests.live.individual_tasks run DIR OUT.json.gz [PYTEST WORDS...]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from fwlab.checkout.project import find_project, load_topology
from fwlab.checkout.raw_results import write_document
from fwlab.grading.record import read_record
from fwlab.measure.individual_tasks import draw, individual_lab
from fwlab.measure.labs import load_lab
from fwlab.measure.provenance import commit
from fwlab.rulesets.files import rendered

from .class_of_five import LAB
from .interrupted import verdicts

SECRET = "words for a test, and for nothing else"
OWN, COPIER = ("ada", "bob"), "cyd"
EXERCISES = ("ex3-ipset", "ex5-mixed")


def make(top: Path) -> dict[str, str]:
    """Write the class and course.yml. Returns the expected verdicts by student/exercise."""
    project = find_project()
    lab, topology = load_lab(project, LAB), load_topology(project)
    for student in OWN:
        own = individual_lab(project, lab, draw(SECRET, lab, student))
        for name in EXERCISES:
            exercise = next(e for e in own.exercises if e.id == name)
            folder = top / "class" / student / name
            folder.mkdir(parents=True)
            for file, text in rendered(lab.folder / "rulesets" / name / "reference", exercise.parameters, topology):
                (folder / file).write_text(text)
    shutil.copytree(top / "class" / OWN[0], top / "class" / COPIER)
    (top / "course.yml").write_text(f"secret: {SECRET}\n")
    return {f"{who}/{name}": "fail" if who == COPIER else "pass" for who in (*OWN, COPIER) for name in EXERCISES}


def run(top: Path, out: Path, words: list[str]) -> int:
    expected = make(top)
    command = [sys.executable, "-m", "pytest", "--testinfra", "--lab", LAB, f"--submissions={top / 'class'}"]
    command += [f"--course={top / 'course.yml'}", f"--results={top / 'results'}", "-q", "-p", "no:cacheprovider"]
    began = time.monotonic()
    chosen = " or ".join(EXERCISES)
    code = subprocess.run([*command, "-k", f"{chosen} or forwards", *words]).returncode
    found = verdicts(top / "results" / "marks.csv")
    grading = read_record(top / "results").grading()
    rows = [{"work": work, "expected": verdict, "verdict": found.get(work)} for work, verdict in expected.items()]
    right = sum(row["verdict"] == row["expected"] for row in rows)
    document = {
        "what": "individual tasks: two students with their own, and a copied file",
        "date": datetime.date.today().isoformat(),
        "commit": commit(find_project()),
        "load_average": os.getloadavg(),
        "seconds": round(time.monotonic() - began, 1),
        "exit_code": code,
        "as_expected": right,
        "marks": rows,
        "students": [student.model_dump(mode="json") for student in grading.students],
        "works": [work.model_dump(mode="json") for work in grading.works],
    }
    write_document(out, json.dumps(document, indent=1) + "\n")
    print(f"{right} of {len(rows)} marks as expected; {document['seconds']} s; exit code {code}")
    return 0 if right == len(rows) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run",))
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    told, words = parser.parse_known_args()
    return run(told.folder.resolve(), told.file, words)


if __name__ == "__main__":
    sys.exit(main())
