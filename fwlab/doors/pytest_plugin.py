# SPDX-License-Identifier: GPL-2.0-or-later
"""The instructor's door: `pytest --testinfra [--lab LAB] [--submissions DIR]` grades on the lab's machines.

Without --testinfra the plugin adds nothing. With it the tests are those of grading/test_lab.py: one for every
need of the DUT (asked through Testinfra), every quick case, and every check of every exercise. The exit code is
0 (all pass), 1 (something failed) or 3 (nothing failed, but something could not be measured).
"""

from __future__ import annotations

import contextlib
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fwlab.words.errors import EXIT_FAIL, EXIT_UNMEASURED, CannotMeasure, FwlabError

if TYPE_CHECKING:
    from fwlab.doors.grading.classroom import Classroom

_CLASSROOM = pytest.StashKey["Classroom"]()
_ENDS = pytest.StashKey[set]()


class Inconclusive(Exception):
    """Could not be measured: neither passed nor failed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fwlab", "Firewall Performance Lab")
    group.addoption("--testinfra", action="store_true", help="grade on the lab's machines")
    group.addoption("--lab", metavar="LAB", help="the lab to grade, such as lab03-ipset (default: all)")
    group.addoption("--submissions", metavar="DIR", type=Path, help="one folder a student, in it one an exercise")
    group.addoption(
        "--part",
        action="append",
        choices=("start", "reference", "mistake"),
        help="of the lab's own rulesets grade only these (default: all three, or none beside --submissions)",
    )
    group.addoption("--machines", metavar="LAB", help="grade on the machines of another lab that is up")
    group.addoption("--testbed", default="auto", help="auto (virtual: the same marks everywhere), virtual or real")
    group.addoption("--engine", default="auto", help="auto (trex where its image holds it), trex or replay")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ENDS] = set()
    if not config.getoption("testinfra"):
        return
    # Imported here: a run of anybody's tests should not load plotting and SSH because fwlab is installed.
    from rich.console import Console

    from fwlab.doors.grading import classroom, test_lab
    from fwlab.outside.project import find_project

    try:
        config.stash[_CLASSROOM] = classroom.Classroom.of(
            find_project(Path(config.invocation_params.dir)),
            config.getoption("lab"),
            config.getoption("submissions"),
            config.getoption("part"),
            config.getoption("testbed"),
            Console(stderr=True),
            config.getoption("machines"),
            config.getoption("engine"),
        )
    except FwlabError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_CLASSROOM].aloud = functools.partial(_say_aloud, config)
    config.args = [test_lab.__file__]


def _say_aloud(config: pytest.Config, text: str) -> None:
    """Now, past pytest's capture: a grading that waits for another would only seem to hang."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        print(f"\n{text}", file=sys.stderr, flush=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _CLASSROOM in config.stash:
        config.stash[_CLASSROOM].close()


@pytest.fixture
def classroom(request: pytest.FixtureRequest) -> Classroom:
    return request.config.stash[_CLASSROOM]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each thing that a lab's declaration names."""
    if "classroom" not in metafunc.fixturenames or _CLASSROOM not in metafunc.config.stash:
        return
    rows = []
    for lab, setting in metafunc.config.stash[_CLASSROOM].settings.items():
        rows += [(lab, *row) for row in _rows(metafunc, lab, setting.lab)]
    possible = ("package", "module", "sysctl", "case", "work", "check")
    names = ["lab", *(name for name in possible if name in metafunc.fixturenames)]
    metafunc.parametrize(names, rows, ids=["-".join(_name(part) for part in row) for row in rows])


def _rows(metafunc: pytest.Metafunc, lab_id: str, lab) -> list[tuple]:
    from fwlab.runs.tasks import chosen_cases
    from fwlab.words.verdict import Outcome

    room, asked = metafunc.config.stash[_CLASSROOM], metafunc.fixturenames
    works = room.works[lab_id]
    marked = [work for work in works if work.expected is Outcome.PASS]
    if "package" in asked:
        return [(package,) for package in lab.needs.packages]
    if "module" in asked:
        return [(module,) for module in lab.needs.modules]
    if "sysctl" in asked:
        return [(item,) for item in lab.needs.sysctls.items()]
    if "case" in asked:
        if metafunc.config.getoption("submissions") or metafunc.config.getoption("part"):
            return []
        return [(case.id,) for case in chosen_cases(lab, [], quick=True)]
    if "check" in asked:
        return [(work, place) for work in marked for place in range(len(work.exercise.checks))]
    if metafunc.function.__name__ == "test_grader_refuses":
        return [(work,) for work in works if work.expected is Outcome.FAIL]
    return [(work,) for work in marked] if "work" in asked else [()]


def _name(part: object) -> str:
    return getattr(part, "name", None) or (part[0] if isinstance(part, tuple) else str(part))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Work by work, so that every ruleset is loaded once: what is on the DUT, then its checks."""
    if _CLASSROOM not in config.stash:
        return

    room = config.stash[_CLASSROOM]

    def order(item: pytest.Item) -> tuple:
        parameters = item.callspec.params
        lab, work = parameters["lab"], parameters.get("work")
        place = room.works[lab].index(work) + 1 if work is not None else 0
        return list(room.settings).index(lab), place

    # A test that a lab gives nothing to do (no case beside submissions, say) is no skipped test but none.
    items[:] = sorted((item for item in items if isinstance(item.callspec.params["lab"], str)), key=order)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    outcome = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, (Inconclusive, CannotMeasure)):
        item.config.stash[_ENDS].add("unmeasured")
        report = outcome.get_result()
        report.longrepr = f"inconclusive: {error}"
    elif outcome.get_result().failed:
        item.config.stash[_ENDS].add("failed")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if _CLASSROOM not in session.config.stash or exitstatus not in (0, 1):
        return
    ends = session.config.stash[_ENDS]
    if "failed" in ends:
        session.exitstatus = EXIT_FAIL
    elif "unmeasured" in ends:
        session.exitstatus = EXIT_UNMEASURED


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if _CLASSROOM not in config.stash:
        return
    room = config.stash[_CLASSROOM]
    for lab in room.settings:
        terminalreporter.section(f"marks of {lab}")
        terminalreporter.write(room.marks(lab))
