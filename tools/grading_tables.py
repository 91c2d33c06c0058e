# SPDX-License-Identifier: GPL-2.0-or-later
"""What cog writes into the instructor's guide: how long gradings took, and the limits of archives."""

import json
import textwrap
from pathlib import Path

from fwlab.checkout.project import find_project
from fwlab.checkout.raw_results import name_of, raw_results, read_document
from fwlab.grading import confined
from fwlab.grading.archives import EXPORT, STUDENT
from fwlab.grading.grader import STUDENT_S
from tools.markdown import block, table


def times() -> str:
    """One row per grading of a class of thirty, the newest first."""
    rows = [_row(path) for path in reversed(raw_results(find_project(), "grading/*-class-of-30*"))]
    return block(table(("graded on", "load average:", "rulesets:", "time:", "per ruleset:"), rows))


def _row(path: Path) -> tuple[str, ...]:
    found = json.loads(read_document(path))
    measured = sum(mark["what"] != "not handed in" for mark in found["marks"])
    minutes, seconds = divmod(round(found["seconds"]), 60)
    each = found["seconds"] / measured
    when = found["date"] + (", interrupted once" if "parts_s" in found else "")
    return when, f"{found['load_average'][0]:.1f}", str(measured), f"{minutes} min {seconds} s", f"{each:.0f} s"


def engine() -> str:
    """A sentence: what giving out, recording and writing cost, by the newest measurement of it."""
    found = json.loads(read_document(raw_results(find_project(), "grading/*-engine-cost")[-1]))
    wall, cpu = found["each_work"]["wall_s"], 100 * found["cpu_s_per_second_of_measuring"]
    text = (
        f"In a class of {found['students']}, the engine itself takes {wall:.2f} s of that: it reads the files, gives "
        "out the task, records the answer and writes marks and pages. While a ruleset is measured, it takes "
        f"{cpu:.1f} % of a CPU."
    )
    return block(textwrap.fill(text, 120))


def two_hosts() -> str:
    """A paragraph: the newest class that was graded by one worker, and again by two hosts with trouble."""
    path = raw_results(find_project(), "grading/*-two-hosts")[-1]
    found = json.loads(read_document(path))
    one, two = (round(found["seconds"][how] / 60) for how in ("by one worker", "by two hosts"))
    equal, students = found["marks"] - len(found["differ"]), len({row["student"] for row in found["by_one"]})
    records = " and ".join(f"`results/grading/{name_of(path)}-{by}.jsonl.gz`" for by in ("by-one", "by-two"))
    text = (
        f"On {found['date']} a class of {students} was graded by one worker ({one} min), and by two hosts ({two} min), "
        "which were namespaces of one machine with two cores. One host lost its power after a third of the class and "
        "came back. After two thirds, the worker of the other one was killed while it measured. "
        f"{equal} of {found['marks']} marks were the same. The records are {records}."
    )
    return block(textwrap.fill(text, 120, break_on_hyphens=False))


def waits() -> str:
    """One row per measurement of the waits (`python -m tools waits`), the newest first."""
    found = reversed(raw_results(find_project(), "lab*/*-waits"))
    figures = ("load average before:", "`vagrant up`, booting:", "from saved states:", "one student graded:")
    return block(table(("measured on", "lab", *figures), map(_waited, found)))


def _waited(path: Path) -> tuple[str, ...]:
    waited = json.loads(read_document(path))
    times = [f"{waited[name]:.0f} s" for name in ("up_by_booting_s", "up_from_saved_state_s", "one_student_graded_s")]
    times[-1] += f", {len(waited['marks'])} exercises"
    return waited["started"][:10], path.parent.name, f"{waited['load_average'][0]:.1f}", *times


def archive_limits() -> str:
    """One row per limit of what is unpacked."""
    one = confined.CPU_S
    rows = [
        ("Files and folders", f"{STUDENT.members}", f"{EXPORT.members}"),
        ("Size of a file", f"{STUDENT.file >> 20} MiB", f"{EXPORT.file >> 20} MiB"),
        ("Unpacked size", f"{STUDENT.total >> 20} MiB", f"{EXPORT.total >> 20} MiB"),
        ("Times as large as packed", f"{STUDENT.ratio}", f"{EXPORT.ratio}"),
        (
            "CPU time to unpack it; of a class, by its size",
            f"{one} s",
            f"{one * confined.CLASS} to {one * confined.MAX_CLASS} s",
        ),
    ]
    return block(table(("limit of an archive", "of a student:", "of a class:"), rows))


def student_limits() -> str:
    """One row per limit of what one student may use."""
    rows = [
        ("CPU time to unpack what was handed in, and again to validate it", f"{confined.CPU_S} s"),
        ("Memory for that", f"{confined.MEMORY >> 20} MiB"),
        ("Time for that, on a busy host", f"{confined.WALL_S:g} s"),
        ("Time on the machines for rulesets that cannot be measured", f"{STUDENT_S / 60:g} min"),
    ]
    return block(table(("limit of one student", "value:"), rows))
