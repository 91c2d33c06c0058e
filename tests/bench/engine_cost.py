# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmark: what the engine of a grading costs, on fake machines.

    python -m tests.bench.engine_cost [OUT.json.gz] [--students N]

For each work: grades a class of one and a class of N (default: 300), with one work each, on machines that measure in no
time. The difference, divided by N - 1, is what reading the files, giving out the task, recording the answer, writing
marks and pages and looking for similar files take. While a work is measured: the CPU time of ten works that take a
second each, less that of ten that take none. All of it three times. Nothing is asserted, because the host may be busy.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from fwlab.checkout.project import find_project
from fwlab.checkout.raw_results import write_document
from fwlab.measure.provenance import commit
from tests.fakes.fake_grading import LAB, FakeGrading

#: Times that everything is measured.
TURNS = 3
#: Students whose works take a second each.
SLOW = 10
#: Each student's differs, so that all are compared and none is alike.
RULES = "# on the DUT: {}\n*raw\n-A PREROUTING -p udp --dport {} -j DROP\nCOMMIT\n"


def seconds(students: int, word: str = "passes") -> dict[str, float]:
    """Wall-clock and CPU time of one grading, children included."""
    with tempfile.TemporaryDirectory() as top:
        grading = FakeGrading(Path(top))
        for number in range(students):
            grading.hand_in(f"student-{number:03}", "rules.iptables", RULES.format(word, 1024 + number))
        began, before = time.monotonic(), os.times()
        done = grading.fwlab("grade", LAB, "--submissions", str(grading.folder))
        took, after = time.monotonic() - began, os.times()
        if done.returncode or len(grading.verdicts()) != students:
            raise SystemExit(f"the grading failed: {done.stdout}{done.stderr}")
    return {"wall_s": round(took, 3), "cpu_s": round(sum(after[:4]) - sum(before[:4]), 3)}


def turn(students: int) -> dict[str, dict[str, float]]:
    return {
        "one": seconds(1),
        "class": seconds(students),
        "fast": seconds(SLOW),
        "slow": seconds(SLOW, "slow"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--students", type=int, default=300)
    told = parser.parse_args()
    seconds(1)  # imports
    runs = [turn(told.students) for _ in range(TURNS)]

    def each(clock: str) -> float:
        return statistics.median(run["class"][clock] - run["one"][clock] for run in runs) / (told.students - 1)

    measuring = statistics.median(run["slow"]["cpu_s"] - run["fast"]["cpu_s"] for run in runs) / SLOW
    document = {
        "what": f"the engine's time for each of {told.students} works, and its CPU time while a work is measured",
        "date": datetime.date.today().isoformat(),
        "commit": commit(find_project()),
        "load_average": os.getloadavg(),
        "students": told.students,
        "each_work": {"wall_s": round(each("wall_s"), 4), "cpu_s": round(each("cpu_s"), 4)},
        "cpu_s_per_second_of_measuring": round(measuring, 4),
        "runs": runs,
    }
    if told.out is not None:
        write_document(told.out, json.dumps(document, indent=1) + "\n")
    print(f"{1000 * each('wall_s'):.0f} ms for each work, {1000 * each('cpu_s'):.0f} ms of them CPU time")
    print(f"{100 * measuring:.1f} % of a CPU while a work is measured")


if __name__ == "__main__":
    main()
