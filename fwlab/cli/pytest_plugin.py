# SPDX-License-Identifier: GPL-2.0-or-later
"""The pytest plugin: `pytest --testinfra [--lab LAB ...] [--submissions DIR]` grades on the lab's machines.

Without --testinfra the plugin does nothing. With it, pytest runs the tests of grading/checks.py: one for each need
of the DUT (checked through Testinfra), each quick case and each check of each exercise. The exit code is 0 (all
pass), 1 (something failed) or 3 (nothing failed, but something could not be measured).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import signal
import sys
from collections.abc import Generator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fwlab.grading.inconclusive import Inconclusive
from fwlab.model.errors import EXIT_FAIL, EXIT_UNMEASURED, CannotMeasure, FwlabError

# Imported where needed: other people's test runs must not load SSH and plotting because fwlab is installed.
if TYPE_CHECKING:
    from fwlab.grading.graded import Work
    from fwlab.grading.grading_session import GradingSession
    from fwlab.model.lab import Lab

_GRADING = pytest.StashKey["GradingSession"]()
#: What became of tests so far: "failed", "unmeasured".
_ENDS = pytest.StashKey[set[str]]()


@dataclass(frozen=True)
class CheckAt:
    """A check by its index in the exercise; its name becomes part of the test's name."""

    index: int
    name: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of grading."""
    group = parser.getgroup("fwlab", "Firewall Performance Lab")
    group.addoption("--testinfra", action="store_true", help="grade on the lab's machines")
    group.addoption("--lab", metavar="LAB", action="append", help="a lab to grade, such as lab03-ipset (default: all)")
    group.addoption(
        "--submissions",
        metavar="DIR",
        type=Path,
        help="a class: a folder, .zip or .tar.gz per student, or what a learning platform exports",
    )
    group.addoption("--course", metavar="FILE", type=Path, help="course.yml: weights, deadlines, partial marks")
    group.addoption("--results", metavar="DIR", type=Path, help="write here (default: reports/LAB/grading)")
    group.addoption(
        "--sets", type=int, default=1, metavar="N", help="grade a class on N sets of machines side by side (default: 1)"
    )
    group.addoption(
        "--force-sets", action="store_true", help="even where the host has too few cores or memory for them"
    )
    group.addoption("--one-of-sets", action="store_true", help=argparse.SUPPRESS)  # what --sets starts (sets.py)
    group.addoption("--resume", action="store_true", help="do not measure again what was decided before")
    group.addoption(
        "--part",
        action="append",
        choices=("start", "reference", "mistake", "variants", "non-solutions", "all"),
        help="which of the lab's own rulesets to grade; all: every one, and the quick cases (default: start, "
        "reference, mistake and the quick cases; none beside --submissions)",
    )
    group.addoption("--further", action="store_true", help="grade what a class handed in of further exercises, too")
    group.addoption(
        "--traffic-seed", type=int, metavar="N", help="seed that draws the traffic, the same for all students"
    )
    group.addoption("--machines", metavar="LAB", help="use the machines of another lab, which must be up")
    group.addoption("--testbed", default="auto", help="auto (virtual: the same marks on every host), virtual or real")
    group.addoption("--engine", default="auto", help="auto (trex if it is there and can play this), trex or replay")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep pytest from loading a class's conftest.py where grading/guard.py did not run (pytest called by a program).

    This is the first hook that a plugin gets: in time for conftest.py, but too late for plugins that a configuration
    file names. So a configuration inside the class's folder is an error.
    """
    options = early_config.known_args_namespace
    if not options.testinfra or options.submissions is None:
        return
    options.noconftest = True
    found = early_config.inipath
    if found is not None and found.resolve().is_relative_to(options.submissions.resolve()):
        raise pytest.UsageError(f"{found}: pytest took its configuration from the class's folder\n  next: remove it")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let pytest's summary say why something is inconclusive."""
    if config.getoption("testinfra"):
        config.option.reportchars += "s"  # print why something could not be measured


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read what is to be graded, before any machine starts."""
    config.stash[_ENDS] = set()
    if not config.getoption("testinfra"):
        return
    if config.getoption("dist", "no") != "no":  # pytest-xdist
        why = "it hands out single tests, and a ruleset's tests belong together"
        raise pytest.UsageError(f"-n does not grade: {why}\n  next: --sets N for N sets of machines")
    from rich.console import Console

    from fwlab.grading import checks
    from fwlab.grading.grading_plan import GradingOptions, plan_grading
    from fwlab.grading.grading_session import GradingSession
    from fwlab.grading.sets import end_with_first
    from fwlab.host.project import find_project

    if config.getoption("one_of_sets"):
        end_with_first()
    named = {"labs": "lab", "parts": "part", "seed": "traffic_seed"}
    given = {f.name: config.getoption(named.get(f.name, f.name)) for f in fields(GradingOptions)}
    options = GradingOptions(**given)
    try:
        plan = plan_grading(find_project(Path(config.invocation_params.dir)), options)
    except FwlabError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_GRADING] = GradingSession(plan, Console(stderr=True), functools.partial(_announce, config))
    config.args = [str(checks.__file__)]
    # A time limit (`timeout`) ends this command as Ctrl-C does, so that the machines are destroyed.
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Write the files of the marks before the first mark. What another set of machines grades comes last."""
    if _GRADING not in session.config.stash or session.config.option.collectonly:
        return
    grading = session.config.stash[_GRADING]
    chosen: dict[str, set[str]] = {}
    for item in session.items:
        parameters = _parameters(item)
        names = chosen.setdefault(parameters["lab"], set())
        if "work" in parameters:
            names.add(parameters["work"].name)
    works = grading.plan.works
    grading.begin({lab: [work for work in works[lab] if work.name in names] for lab, names in chosen.items()})
    session.items.sort(key=lambda item: grading.turn(_parameters(item).get("work")))


def _announce(config: pytest.Config, text: str) -> None:
    """Print at once, past pytest's capture: a grading that waits for another would otherwise seem to hang."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        print(f"\n{text}", file=sys.stderr, flush=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Release the machines, and the copies of what was handed in."""
    if _GRADING in config.stash:
        grading = config.stash[_GRADING]
        grading.close()  # in case pytest did not reach pytest_sessionfinish
        if grading.plan.submissions is not None:
            grading.plan.submissions.close()


@pytest.fixture
def grading(request: pytest.FixtureRequest) -> GradingSession:
    """The session that all checks of this run share."""
    return request.config.stash[_GRADING]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each item that a lab declares."""
    if "grading" not in metafunc.fixturenames or _GRADING not in metafunc.config.stash:
        return
    rows: list[tuple[Any, ...]] = []
    for lab_id, context in metafunc.config.stash[_GRADING].plan.contexts.items():
        rows += [(lab_id, *row) for row in _rows(metafunc, lab_id, context.lab)]
    possible = ("package", "module", "sysctl", "case", "work", "check")
    names = ["lab", *(name for name in possible if name in metafunc.fixturenames)]
    metafunc.parametrize(names, rows, ids=["-".join(_name(part) for part in row) for row in rows])


def _rows(metafunc: pytest.Metafunc, lab_id: str, lab: Lab) -> list[tuple[Any, ...]]:
    from fwlab.measure.plan import chosen_cases
    from fwlab.model.verdict import Outcome

    fixtures = metafunc.fixturenames
    works: list[Work] = metafunc.config.stash[_GRADING].plan.works[lab_id]
    marked = [work for work in works if work.expected is Outcome.PASS]
    if "package" in fixtures:
        return [(package,) for package in lab.needs.packages]
    if "module" in fixtures:
        return [(module,) for module in lab.needs.modules]
    if "sysctl" in fixtures:
        return [(item,) for item in lab.needs.sysctls.items()]
    if "case" in fixtures:
        parts = metafunc.config.getoption("part")
        if metafunc.config.getoption("submissions") or (parts and "all" not in parts):
            return []
        return [(case.id,) for case in chosen_cases(lab, [], quick=True)]
    if "check" in fixtures:
        return [(work, CheckAt(index, check.id)) for work in marked for index, check in enumerate(work.exercise.checks)]
    if metafunc.function.__name__ == "test_grader_refuses":
        return [(work,) for work in works if work.expected is Outcome.FAIL]
    return [(work,) for work in marked] if "work" in fixtures else [()]


def _name(part: object) -> str:
    if isinstance(part, tuple):  # a sysctl and its value
        return str(part[0])
    return str(getattr(part, "name", part))


def _parameters(item: pytest.Item) -> dict[str, Any]:
    """The parameters of one of our tests; every one has some."""
    parameters: dict[str, Any] = item.callspec.params  # type: ignore[attr-defined]  # set by parametrize
    return parameters


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests by work, so that each ruleset is loaded once: first what the DUT holds, then the checks."""
    if _GRADING not in config.stash:
        return
    plan = config.stash[_GRADING].plan

    def order(item: pytest.Item) -> tuple[int, int]:
        parameters = _parameters(item)
        lab, work = parameters["lab"], parameters.get("work")
        return list(plan.contexts).index(lab), plan.works[lab].index(work) + 1 if work is not None else 0

    # Without parameters (no case beside submissions, say) pytest makes one skipped test. Leave it out.
    items[:] = sorted((item for item in items if isinstance(_parameters(item)["lab"], str)), key=order)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Report what a grading could not measure as skipped. In other tests the same error is a failure."""
    report = (yield).get_result()
    if _GRADING not in item.config.stash:
        return
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, (Inconclusive, CannotMeasure)):
        # Reported as skipped, also in JUnit XML: in a grade book it must not count as a failure.
        item.config.stash[_ENDS].add("unmeasured")
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = (path, (line or 0) + 1, f"Skipped: inconclusive: {item.name}: {error}")
    elif report.failed:
        item.config.stash[_ENDS].add("failed")
        if item.config.getoption("one_of_sets") and "work" not in _parameters(item):
            item.session.shouldfail = f"{item.name}: so these machines grade nobody"
        if isinstance(error, FwlabError):
            report.longrepr = str(error)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Save the marks and set pytest's exit code."""
    if _GRADING not in session.config.stash:
        return
    grading, ends = session.config.stash[_GRADING], session.config.stash[_ENDS]
    try:
        grading.close()
    except Exception as error:  # noqa: BLE001 - or pytest would end with a traceback and the code of a failed check
        ends.add("unmeasured")
        grading.console.print(str(error), markup=False, highlight=False, soft_wrap=True)
    if exitstatus not in (0, 1):
        return
    if "failed" in ends:
        session.exitstatus = EXIT_FAIL
    elif "unmeasured" in ends or grading.records.trouble is not None:
        session.exitstatus = EXIT_UNMEASURED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print each lab's marks."""
    if _GRADING not in config.stash:
        return
    from fwlab.grading.marks import NOT_YET

    grading = config.stash[_GRADING]
    for lab in grading.graded:
        terminalreporter.section(f"marks of {lab}")
        terminalreporter.write(grading.marks(lab))
        if grading.plan.submissions is not None and NOT_YET in grading.marks(lab):
            terminalreporter.write_line("the same command with --resume grades the rest")
        seed = grading.plan.contexts[lab].seed
        terminalreporter.write_line(f"seed {seed} drew the traffic; --traffic-seed {seed} gives the same marks")
        if lab in grading.plan.elsewhere:
            terminalreporter.write_line(f"not graded here: {grading.plan.elsewhere[lab]}")
