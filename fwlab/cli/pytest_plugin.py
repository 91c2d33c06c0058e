# SPDX-License-Identifier: GPL-2.0-or-later
"""The instructor's door: `pytest --testinfra [--lab LAB] [--submissions DIR]` grades on the lab's machines.

Without --testinfra the plugin adds nothing. With it the tests are those of grading/checks.py: one for every
need of the DUT (asked through Testinfra), every quick case, and every check of every exercise. The exit code is
0 (all pass), 1 (something failed) or 3 (nothing failed, but something could not be measured).
"""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fwlab.grading.inconclusive import Inconclusive
from fwlab.model.errors import EXIT_FAIL, EXIT_UNMEASURED, CannotMeasure, FwlabError

if TYPE_CHECKING:
    from fwlab.grading.grading_session import GradingSession

_GRADING = pytest.StashKey["GradingSession"]()
_ENDS = pytest.StashKey[set]()


@dataclass(frozen=True)
class Place:
    """A check by its place in the exercise; its name becomes part of the test's."""

    place: int
    name: str


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fwlab", "Firewall Performance Lab")
    group.addoption("--testinfra", action="store_true", help="grade on the lab's machines")
    group.addoption("--lab", metavar="LAB", help="the lab to grade, such as lab03-ipset (default: all)")
    group.addoption("--submissions", metavar="DIR", type=Path, help="one folder a student, in it one an exercise")
    group.addoption(
        "--part",
        action="append",
        choices=("start", "reference", "mistake", "variants", "all"),
        help="which of the lab's own rulesets to grade; all: every one, and the quick cases (default: start, "
        "reference, mistake and the quick cases; none beside --submissions)",
    )
    group.addoption("--machines", metavar="LAB", help="grade on the machines of another lab that is up")
    group.addoption("--testbed", default="auto", help="auto (virtual: the same marks everywhere), virtual or real")
    group.addoption("--engine", default="auto", help="auto (trex where its image holds it), trex or replay")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Where grading/guard.py was not asked (pytest under another program, say) this is the earliest that we hear of it.

    Too late for a plugin that a configuration names, in time for conftest.py.
    """
    told = early_config.known_args_namespace
    if not told.testinfra or told.submissions is None:
        return
    told.noconftest = True
    found = early_config.inipath
    if found is not None and found.resolve().is_relative_to(told.submissions.resolve()):
        raise pytest.UsageError(f"{found}: pytest took its configuration from the class's folder\n  next: remove it")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    if config.getoption("testinfra"):
        config.option.reportchars += "s"  # why something could not be measured belongs to the marks


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ENDS] = set()
    if not config.getoption("testinfra"):
        return
    # Imported here: a run of anybody's tests should not load plotting and SSH because fwlab is installed.
    from rich.console import Console

    from fwlab.grading import checks, grading_session
    from fwlab.host.project import find_project

    try:
        config.stash[_GRADING] = grading_session.GradingSession.of(
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
    config.stash[_GRADING].aloud = functools.partial(_say_aloud, config)
    config.args = [checks.__file__]
    # A time limit around this command ends it as Ctrl-C does: machines that it started go with it.
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """The files of the marks, before the first mark: who is to be graded."""
    if _GRADING not in session.config.stash or session.config.option.collectonly:
        return
    grading = session.config.stash[_GRADING]
    chosen = {item.callspec.params["lab"]: set() for item in session.items}
    for item in session.items:
        if "work" in item.callspec.params:
            chosen[item.callspec.params["lab"]].add(item.callspec.params["work"].name)
    grading.begin({lab: [work for work in grading.works[lab] if work.name in names] for lab, names in chosen.items()})


def _say_aloud(config: pytest.Config, text: str) -> None:
    """Now, past pytest's capture: a grading that waits for another would only seem to hang."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        print(f"\n{text}", file=sys.stderr, flush=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _GRADING in config.stash:
        config.stash[_GRADING].close()  # where pytest did not come to its end


@pytest.fixture
def grading(request: pytest.FixtureRequest) -> GradingSession:
    return request.config.stash[_GRADING]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each thing that a lab's declaration names."""
    if "grading" not in metafunc.fixturenames or _GRADING not in metafunc.config.stash:
        return
    rows = []
    for lab, context in metafunc.config.stash[_GRADING].contexts.items():
        rows += [(lab, *row) for row in _rows(metafunc, lab, context.lab)]
    possible = ("package", "module", "sysctl", "case", "work", "check")
    names = ["lab", *(name for name in possible if name in metafunc.fixturenames)]
    metafunc.parametrize(names, rows, ids=["-".join(_name(part) for part in row) for row in rows])


def _rows(metafunc: pytest.Metafunc, lab_id: str, lab) -> list[tuple]:
    from fwlab.measure.plan import chosen_cases
    from fwlab.model.verdict import Outcome

    grading, asked = metafunc.config.stash[_GRADING], metafunc.fixturenames
    works = grading.works[lab_id]
    marked = [work for work in works if work.expected is Outcome.PASS]
    if "package" in asked:
        return [(package,) for package in lab.needs.packages]
    if "module" in asked:
        return [(module,) for module in lab.needs.modules]
    if "sysctl" in asked:
        return [(item,) for item in lab.needs.sysctls.items()]
    if "case" in asked:
        parts = metafunc.config.getoption("part")
        if metafunc.config.getoption("submissions") or (parts and "all" not in parts):
            return []
        return [(case.id,) for case in chosen_cases(lab, [], quick=True)]
    if "check" in asked:
        return [(work, Place(place, check.id)) for work in marked for place, check in enumerate(work.exercise.checks)]
    if metafunc.function.__name__ == "test_grader_refuses":
        return [(work,) for work in works if work.expected is Outcome.FAIL]
    return [(work,) for work in marked] if "work" in asked else [()]


def _name(part: object) -> str:
    return getattr(part, "name", None) or (part[0] if isinstance(part, tuple) else str(part))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Work by work, so that every ruleset is loaded once: what is on the DUT, then its checks."""
    if _GRADING not in config.stash:
        return

    grading = config.stash[_GRADING]

    def order(item: pytest.Item) -> tuple:
        parameters = item.callspec.params
        lab, work = parameters["lab"], parameters.get("work")
        place = grading.works[lab].index(work) + 1 if work is not None else 0
        return list(grading.contexts).index(lab), place

    # A test that a lab gives nothing to do (no case beside submissions, say) is no skipped test but none.
    items[:] = sorted((item for item in items if isinstance(item.callspec.params["lab"], str)), key=order)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = (yield).get_result()
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, (Inconclusive, CannotMeasure)):
        # A skip, in JUnit too: who reads that file as a grade book must not take it for a failure.
        item.config.stash[_ENDS].add("unmeasured")
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = (path, (line or 0) + 1, f"Skipped: inconclusive: {item.name}: {error}")
    elif report.failed:
        item.config.stash[_ENDS].add("failed")
        if isinstance(error, FwlabError):
            report.longrepr = str(error)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if _GRADING not in session.config.stash:
        return
    grading, ends = session.config.stash[_GRADING], session.config.stash[_ENDS]
    try:
        grading.close()
    except Exception as error:  # noqa: BLE001 - else pytest would end with a traceback, and with the code of a failed check
        ends.add("unmeasured")
        grading.console.print(str(error), markup=False, highlight=False, soft_wrap=True)
    if exitstatus not in (0, 1):
        return
    if "failed" in ends:
        session.exitstatus = EXIT_FAIL
    elif "unmeasured" in ends or grading.records.trouble is not None:
        session.exitstatus = EXIT_UNMEASURED


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if _GRADING not in config.stash:
        return
    grading = config.stash[_GRADING]
    for lab in grading.graded:
        terminalreporter.section(f"marks of {lab}")
        terminalreporter.write(grading.marks(lab))
