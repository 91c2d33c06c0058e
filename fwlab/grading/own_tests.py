# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests in Testinfra's words: an instructor's, and a lab's own in labs/LAB/tests.

They run on the workers, each time in their own pytest: those of the machines before anything is graded, those that
ask for a submission while its ruleset is on the DUT. The latter are checks of that mark.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fwlab.checkout.own_folder import own_folder
from fwlab.checkout.project import Project
from fwlab.grading.record import CheckMark
from fwlab.measure.context import RunContext
from fwlab.measure.plan import case_spec
from fwlab.measure.session import Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import TEST, Outcome, Verdict, overall
from fwlab.report.model import ReportModel
from fwlab.report.report_rows import Row

#: Where a test is: the lab's own, and those of the command line.
OF_LAB, GIVEN = "lab", "given"
#: Time limit of one pytest (s).
LIMIT_S = 120.0
_CONFTEST = "from fwlab.grading.fixtures import *\n"
_OUTCOMES = {"passed": Outcome.PASS, "failed": Outcome.FAIL}


@dataclass(frozen=True)
class _Collected:
    """A test: whether it asks for a submission, and the cases whose capacity it asks for."""

    of_submission: bool
    cases: tuple[str, ...]


def files_of_tests(lab: Lab, given: Iterable[Path] | None) -> dict[str, Path]:
    """The files of the tests by their names for workers. Raises BadInput for a path that has none."""
    found = {f"{OF_LAB}/{path.name}": path for path in sorted((lab.folder / "tests").glob("*.py"))}
    for path in given or ():
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not files or not all(file.is_file() for file in files):
            raise BadInput(f"{path}: not a file of tests", "name a file such as test_mine.py, or a folder with some")
        found |= {f"{GIVEN}/{file.relative_to(path.parent)}": file for file in files}
    return found


def read_tests(files: Mapping[str, Path]) -> dict[str, str]:
    """Their texts. Raises BadInput."""
    try:
        return {name: path.read_text() for name, path in files.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"a file of tests cannot be read: {error}", "fix it, or leave it out") from error


class OwnTests:
    """The tests of one grading on one worker's machines."""

    def __init__(self, files: Mapping[str, str], project: Project, lab: str, ssh_config: Path) -> None:
        self._files, self._facts = files, {"project": str(project.root), "lab": lab, "ssh_config": str(ssh_config)}

    @cached_property
    def _collected(self) -> list[_Collected]:
        found = self._pytest({}, "--collect-only") if self._files else {}
        return [_Collected(one["of_submission"], tuple(one["cases"])) for one in found.values()]

    def cases(self, lab: Lab) -> list[str]:
        """The cases whose capacity a test asks for. Raises CannotMeasure if pytest cannot collect the tests."""
        wanted = sorted({case for test in self._collected for case in test.cases})
        if unknown := [case for case in wanted if case not in lab.cases]:
            raise CannotMeasure(f"the tests measure {unknown[0]}, which is not a case of {lab.id}", "fix the tests")
        return wanted

    def of_machines(self, run: Run) -> list[CheckMark]:
        """Run those of the machines. A test that is skipped is no check."""
        return [] if all(test.of_submission for test in self._collected) else self._run(run)

    def of_submission(self, run: Run, submission: Mapping[str, Any], measured: Measured) -> list[CheckMark]:
        """Run those that ask for a submission, while this one is on the DUT. A test that is skipped is no check.

        submission  the fields of the fixture of that name (fixtures.py)
        """
        if not any(test.of_submission for test in self._collected):
            return []
        return self._run(run, submission=submission, measured=measured.model_dump(mode="json"))

    def _run(self, run: Run, **facts: Any) -> list[CheckMark]:
        found = self._pytest({"run": run.model_dump(mode="json"), **facts})
        return [
            CheckMark(check=name, metric=TEST, outcome=_OUTCOMES[outcome], text=text or "The test passes.")
            for name, (outcome, text) in found.items()
            if outcome in _OUTCOMES
        ]

    def _pytest(self, facts: Mapping[str, Any], *words: str) -> dict[str, Any]:
        with own_folder("fwlab-own-tests-") as place:
            top, answer = place / "tests", place / "answer.json"
            for name, text in {"conftest.py": _CONFTEST, **self._files}.items():
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                (top / name).write_text(text)
            given = place / "facts.json"
            given.write_text(json.dumps({**self._facts, **facts, "answer": str(answer)}))
            own = ["-c", os.devnull, f"--rootdir={top}", "--import-mode=importlib", "-p", "no:cacheprovider", "-q"]
            command = [sys.executable, "-m", "pytest", *own, f"--fwlab-facts={given}", *words, str(top)]
            try:
                done = subprocess.run(
                    command,
                    cwd=top,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=LIMIT_S,
                    check=False,
                )
                found: dict[str, Any] = json.loads(answer.read_text())
            except subprocess.TimeoutExpired as error:
                raise CannotMeasure(f"the tests took more than {LIMIT_S:g} s", "make them quicker") from error
            except (OSError, ValueError) as error:
                said = done.stdout.strip().splitlines()[-1:] or [str(error)]
                raise CannotMeasure(f"the tests did not run: {said[0]}", "run them alone") from error
        if done.returncode not in (0, 1, 5):
            raise CannotMeasure(f"the tests did not run: {done.stdout.strip()[-500:]}", "fix them")
        return found


def measure_and_test(
    session: Session, context: RunContext, specs: Sequence[MeasurementSpec]
) -> dict[str, list[Verdict]]:
    """Measure a student's own rulesets, and run the lab's tests of submissions while each is on the DUT.

    Returns their verdicts by exercise. A test that cannot run says nothing about the ruleset.
    """
    texts = read_tests(files_of_tests(context.lab, None))
    own = OwnTests(texts, context.project, context.lab.id, session.ssh_config) if texts else None
    verdicts: dict[str, list[Verdict]] = {}
    try:
        missing = [name for name in own.cases(context.lab) if session.run.case(name) is None] if own else []
        session.measure_cases([case_spec(context, context.lab.cases[name], None) for name in missing])
    except CannotMeasure as error:
        verdicts, own = {spec.id: [_verdict(spec.id, str(error))] for spec in specs}, None
    for spec in specs:
        session.measure_exercises([spec])
        measured = session.run.exercises[-1]
        if own is None or measured.refused is not None or measured.lost or measured.problems:
            continue
        files = {file.name: file.text for file in spec.files}
        try:
            marks = own.of_submission(session.run, {"student": "you", "exercise": spec.id, "files": files}, measured)
            verdicts[spec.id] = [_verdict(spec.id, mark.text, mark.check, mark.outcome) for mark in marks]
        except CannotMeasure as error:
            verdicts[spec.id] = [_verdict(spec.id, str(error))]
    return verdicts


def _verdict(exercise: str, text: str, check: str = "tests", outcome: Outcome = Outcome.INCONCLUSIVE) -> Verdict:
    return Verdict(
        subject=exercise, check=check, metric=TEST, outcome=outcome, value=None, low=-math.inf, high=math.inf, text=text
    )


def with_tests(model: ReportModel, tests: Mapping[str, Sequence[Verdict]]) -> ReportModel:
    """The report with the verdicts of tests added to those of the exercises' own checks."""

    def tested(row: Row) -> Row:
        more = tuple(tests.get(row.id, ()))
        if not more or row.outcome is None:
            return row
        outcome = overall([row.outcome, *(verdict.outcome for verdict in more)])
        return replace(row, verdicts=(*row.verdicts, *more), outcome=outcome)

    return replace(model, exercises=tuple(map(tested, model.exercises)))
