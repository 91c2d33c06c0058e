# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests in Testinfra's words: an instructor's, and a lab's own in labs/LAB/tests.

They run on the workers, each time in a pytest of their own: those of the machines before anything is graded, those that
ask for a submission while its ruleset is on the DUT. The latter are checks of that mark.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwlab.checkout.project import Project
from fwlab.grading.record import CheckMark
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome

#: Where a test is: the lab's own, and those of the command line.
OF_LAB, GIVEN = "lab", "given"
#: Time limit of one pytest (s).
LIMIT_S = 120.0
_CONFTEST = "from fwlab.grading.fixtures import *\n"
_OUTCOMES = {"passed": Outcome.PASS, "failed": Outcome.FAIL}


@dataclass(frozen=True)
class Collected:
    """A test: whether it asks for a submission, and the cases whose capacity it asks for."""

    of_submission: bool
    cases: tuple[str, ...]


def files_of_tests(lab: Lab, given: Iterable[Path] | None) -> dict[str, Path]:
    """The files of the tests by their names for workers. Raises BadInput for a path that has none."""
    found = {f"{OF_LAB}/{path.name}": path for path in sorted((lab.folder / "tests").glob("*.py"))}
    for path in given or ():
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not files or not all(file.is_file() for file in files):
            raise BadInput(f"{path}: no file of tests", "name a file such as test_mine.py, or a folder with some")
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

    def collect(self) -> dict[str, Collected]:
        """Every test by its id. Raises CannotMeasure if pytest cannot collect them."""
        found = self._pytest({}, "--collect-only")
        return {name: Collected(one["of_submission"], tuple(one["cases"])) for name, one in found.items()}

    def run(
        self, run: Run, submission: Mapping[str, Any] | None = None, measured: Measured | None = None
    ) -> list[CheckMark]:
        """Run those of the machines, or those of this submission. A test that is skipped is no check."""
        facts: dict[str, Any] = {"run": run.model_dump(mode="json")}
        if submission is not None and measured is not None:
            facts |= {"submission": submission, "measured": measured.model_dump(mode="json")}
        found = self._pytest(facts)
        return [
            CheckMark(check=name, metric="test", outcome=_OUTCOMES[outcome], text=text or "The test passes.")
            for name, (outcome, text) in found.items()
            if outcome in _OUTCOMES
        ]

    def _pytest(self, facts: Mapping[str, Any], *words: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="fwlab-tests-") as place:
            top, answer = Path(place) / "tests", Path(place) / "answer.json"
            for name, text in {"conftest.py": _CONFTEST, **self._files}.items():
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                (top / name).write_text(text)
            given = Path(place) / "facts.json"
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
