# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of a grading, declared once for `pytest --testinfra` and `fwlab grade`."""

from collections.abc import Sequence
from dataclasses import Field, dataclass, field
from pathlib import Path
from typing import Any

#: The mark of a test that asks for the capacity of cases, for pytest's list of marks.
MEASURES = "measures(case, …): measure these cases before, whose capacity the test asks for"
#: Which of the lab's own rulesets may be graded; `all` means these and the lab's quick cases.
PARTS = ("start", "reference", "mistake", "variants", "non-solutions", "all")


def _option(default: Any, help_: str, *, metavar: str = "", choices: Sequence[str] = (), name: str = "") -> Any:
    """A field that is an option on both command lines. `name`: that of the option, if it is another."""
    return field(default=default, metadata={"help": help_, "metavar": metavar, "choices": choices, "name": name})


@dataclass(frozen=True)
class GradingOptions:
    """What to grade, and how. Both command lines take their options from here."""

    labs: list[str] | None = _option(
        None, "a lab to grade, such as lab03-ipset (default: all)", metavar="LAB", name="lab"
    )
    submissions: Path | None = _option(
        None, "a class: a folder, .zip or .tar.gz per student, or what a learning platform exports", metavar="DIR"
    )
    course: Path | None = _option(None, "course.yml: weights, deadlines, partial marks", metavar="FILE")
    tasks: Path | None = _option(
        None, "tasks.yml: the numbers of each student's task, where course.yml has no secret", metavar="FILE"
    )
    results: Path | None = _option(None, "write here (default: reports/LAB/grading)", metavar="DIR")
    resume: bool = _option(False, "do not measure again what was decided before")
    parts: list[str] | None = _option(
        None,
        "which of the lab's own rulesets to grade; all: every one, and the quick cases (default: start, reference, "
        "mistake and the quick cases; none with --submissions)",
        choices=PARTS,
        name="part",
    )
    further: bool = _option(False, "grade what a class handed in of further exercises, too")
    seed: int | None = _option(
        None, "seed that draws the traffic, the same for all students", metavar="N", name="traffic-seed"
    )
    machines: str | None = _option(None, "use the machines of another lab, which must be up", metavar="LAB")
    testbed: str = _option("auto", "auto (virtual: the same marks on every host), virtual or real", metavar="NAME")
    engine: str = _option("auto", "auto (trex if it is there and can play this), trex or replay", metavar="NAME")
    workers: int = _option(1, "grade on N sets of machines on this host", metavar="N")
    force_workers: bool = _option(False, "even where the host has too few cores or too little memory for them")
    scheduler: str | None = _option(None, "grade on the workers of this scheduler (tls://HOST:PORT)", metavar="ADDRESS")
    key: Path | None = _option(None, "the key of that scheduler, which `fwlab key` makes", metavar="FILE")
    tests: list[Path] | None = _option(None, "run these tests of yours, too", metavar="PATH")
    dashboard: bool = _option(False, "serve Dask's dashboard on this host")


def option_name(one: Field[Any]) -> str:
    """How a field of GradingOptions is called on a command line, without the dashes."""
    return str(one.metadata["name"] or one.name.replace("_", "-"))
