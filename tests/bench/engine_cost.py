# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmark: what the engine of a grading costs for each work, on fake machines that measure in no time.

    python -m tests.bench.engine_cost [OUT.JSON] [--students N]

Grades a class of one and a class of N (default: 300), with one work each, in turns, three times. The difference,
divided by N - 1, is what reading the files, giving out the task, recording the answer, writing marks and pages and
looking for similar files take for one work. Nothing is asserted, because the host may be busy.
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
from fwlab.measure.provenance import commit
from tests.fakes.fake_grading import LAB, FakeGrading

#: Times that both classes are graded.
TURNS = 3
#: Each student's differs, so that all are compared and none is alike.
RULES = "*raw\n-A PREROUTING -p udp --dport {} -j DROP\nCOMMIT\n"


def seconds(students: int) -> dict[str, float]:
    """Wall-clock and CPU time of one grading, children included."""
    with tempfile.TemporaryDirectory() as top:
        grading = FakeGrading(Path(top))
        for number in range(students):
            grading.hand_in(f"student-{number:03}", "rules.iptables", RULES.format(1024 + number))
        began, cpu = time.monotonic(), os.times()
        done = grading.fwlab("grade", LAB, "--submissions", str(grading.folder))
        took, after = time.monotonic() - began, os.times()
        if done.returncode or len(grading.verdicts()) != students:
            raise SystemExit(f"the grading failed: {done.stdout}{done.stderr}")
    return {"wall_s": took, "cpu_s": sum(after[:4]) - sum(cpu[:4])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--students", type=int, default=300)
    told = parser.parse_args()
    seconds(1)  # imports
    runs = [{"one": seconds(1), "class": seconds(told.students)} for _ in range(TURNS)]
    each = {
        clock: statistics.median(run["class"][clock] - run["one"][clock] for run in runs) / (told.students - 1)
        for clock in ("wall_s", "cpu_s")
    }
    document = {
        "what": f"the engine's time for each work: a class of {told.students} on machines that measure in no time",
        "date": datetime.date.today().isoformat(),
        "commit": commit(find_project()),
        "load_average": os.getloadavg(),
        "students": told.students,
        "each": each,
        "runs": runs,
    }
    if told.out is not None:
        told.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{1000 * each['wall_s']:.1f} ms for each work, {1000 * each['cpu_s']:.1f} ms of CPU time")


if __name__ == "__main__":
    main()
