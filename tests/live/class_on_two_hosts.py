# SPDX-License-Identifier: GPL-2.0-or-later
"""Grade a class with known marks by one worker, and again by two hosts, one of which dies.

    python -m tests.live.class_on_two_hosts DIR OUT.json.gz [--students N]      (as root)

The class is that of known_class.py, of N students (a multiple of 30; default: 300). In the second grading, host two
loses its power when a third of the works is decided, and comes back. After two thirds, the worker of host one is killed
while it measures, and started again. Every mark must be that of the first grading. OUT has both gradings' marks, their
times and the load of this host; the two records are kept next to it, compressed.

DIR keeps the class and both gradings. Three hundred take hours: if the first grading is interrupted, the same command
continues it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from fwlab.checkout.project import find_project
from fwlab.checkout.raw_results import name_of, write_document
from fwlab.measure.provenance import commit

from . import known_class
from .interrupted import verdicts
from .known_class import LAB
from .two_hosts import Host, child_of, connect, recipe, two_hosts, wait_for

#: Seconds for a whole grading, for each student.
PATIENCE_S = 120


def decided(results: Path) -> int:
    """Exercises that a worker has decided on its machines. Others, such as what is no ruleset, need none."""
    record = results / "record.jsonl"
    lines = record.read_text().splitlines() if record.exists() else []
    return sum('"entry":"work"' in line and '"machines":""' not in line for line in lines)


def by_one(host: Host, top: Path, words: str, students: int) -> float:
    """Grade by the worker in the process of `fwlab grade`, or go on with that; returns the seconds that it took now."""
    began, results = time.monotonic(), top / "by-one"
    words += " --resume" if (results / "record.jsonl").exists() else ""
    code = host.start(f"fwlab grade {LAB} {words} --results {results}").wait(students * PATIENCE_S)
    if code not in (0, 1, 3):
        raise SystemExit(f"not all is graded: {host.said()[-500:]}")
    return time.monotonic() - began


def by_two(one: Host, two: Host, top: Path, words: str, students: int) -> float:
    """Grade by a worker on each host, with what happens to them; returns the seconds that it took."""
    results, patience = top / "by-two", float(students * PATIENCE_S)
    scheduler, worker, grade = recipe("Several hosts", "text").splitlines()
    (make_key,) = recipe("Several hosts", "sh").splitlines()
    if one.start(make_key).wait(60) != 0:
        raise SystemExit(one.said())
    key = one.checkout.top / "class.pem"
    (two.checkout.top / key.name).write_bytes(key.read_bytes())
    one.start(scheduler)
    first, _ = one.start(worker), two.start(worker)
    for host in (one, two):
        wait_for(lambda host=host: "waits for work" in host.said(), f"the worker of host {host.name}", 120)
    begin = time.monotonic()
    grading = one.start(f"{grade.replace('--submissions submissions', words)} --results {results}")

    def part(share: float) -> bool:
        return decided(results) >= share * students or grading.poll() is not None

    wait_for(lambda: part(1 / 3), "a third of the class", patience)
    two.switch_off()
    two.switch_on()
    connect(one, two)
    two.start(worker)
    wait_for(lambda: part(2 / 3), "two thirds of the class", patience)
    os.kill(child_of(first), signal.SIGKILL)
    one.start(worker)
    grading.wait(patience)
    return time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--students", type=int, default=300)
    told = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # Ctrl-C does not reach a shell's background jobs
    top = told.folder.resolve()
    top.mkdir(parents=True, exist_ok=True)
    if not (top / "expected.json").exists():
        known_class.make(top, told.students)
    expected = json.loads((top / "expected.json").read_text())
    shutil.rmtree(top / "by-two", ignore_errors=True)
    words = f"--submissions {top / 'class'} --further --traffic-seed 300"
    with two_hosts(top / "hosts") as (one, two):
        seconds = {"by one worker": by_one(one, top, words, told.students)}
        seconds["by two hosts"] = by_two(one, two, top, words, told.students)
        for host in (one, two):
            (top / f"{host.name}.log").write_text(host.said())
    return report(top, told.out, expected, seconds)


def report(top: Path, out: Path, expected: dict[str, dict[str, Any]], seconds: dict[str, float]) -> int:
    """Compare both gradings, and write what came of them."""
    marks = {name: verdicts(top / name / "marks.csv") for name in ("by-one", "by-two")}
    differ = {work: (mark, marks["by-two"].get(work)) for work, mark in marks["by-one"].items()}
    differ = {work: pair for work, pair in differ.items() if pair[0] != pair[1]}
    rows = known_class.compare(expected, top / "by-one" / "marks.csv")
    document = {
        "what": f"a class of {len(expected)} by one worker, and by two hosts of which one lost its power after a third "
        "of the exercises; after two thirds the other's worker was killed while it measured",
        "date": datetime.date.today().isoformat(),
        "commit": commit(find_project()),
        "load_average": os.getloadavg(),
        "seconds": {how: round(took, 1) for how, took in seconds.items()},
        "marks": len(marks["by-one"]),
        "differ": differ,
        "by_one": rows,
    }
    write_document(out, json.dumps(document, indent=1) + "\n")
    for name in marks:
        record = (top / name / "record.jsonl").read_text(encoding="utf-8").replace(f"{top}/", "")
        write_document(out.with_name(f"{name_of(out)}-{name}.jsonl.gz"), record)
    known_class.show(rows)
    print(f"{len(marks['by-one']) - len(differ)} of {len(marks['by-one'])} marks equal; {document['seconds']}")
    return 1 if differ or not all(row["right"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
