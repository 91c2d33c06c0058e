# SPDX-License-Identifier: GPL-2.0-or-later
"""The pytest plugin: `pytest --testinfra [--lab LAB ...] [--submissions DIR]` shows a grading as tests.

Without --testinfra the plugin does nothing. With it, pytest runs the tests of grading/checks.py: one for each need of
the DUT, each quick case and each check of each exercise. The engine (grading/engine.py) measures what -k, -x and -m
choose. The exit code is 0 (all pass), 1 (something failed) or 3 (nothing failed, but something could not be measured).
"""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
from collections.abc import Generator, Iterator
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin

import pytest

from fwlab.grading.options import MEASURES
from fwlab.model.errors import EXIT_FAIL, EXIT_UNMEASURED, CannotMeasure, FwlabError

# Imported where needed: other people's test runs must not load SSH and plotting because fwlab is installed.
if TYPE_CHECKING:
    from fwlab.grading.engine import Engine
    from fwlab.grading.options import GradingOptions
    from fwlab.grading.works import Work
    from fwlab.model.lab import Lab

_ENGINE = pytest.StashKey["Engine"]()
#: What became of tests so far: "failed", "unmeasured".
_ENDS = pytest.StashKey[set[str]]()
#: The files of an instructor's and of labs' own tests: their lab, and how its workers call them.
_OWN_TESTS = pytest.StashKey[dict[str, tuple[str, str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of grading: each as --fwlab-NAME, and as --NAME unless another plugin has that."""
    from fwlab.grading.options import GradingOptions, option_name

    group = parser.getgroup("fwlab", "Firewall Performance Lab")
    group.addoption("--testinfra", action="store_true", dest="fwlab", help="grade on the lab's machines")
    for one in fields(GradingOptions):
        given: dict[str, Any] = {"dest": f"fwlab_{one.name}", "default": one.default, "help": one.metadata["help"]}
        if one.default is False:
            given["action"] = "store_true"
        else:
            [kind] = [kind for kind in get_args(one.type) or [one.type] if kind is not NoneType]
            several = get_origin(kind) is list
            given |= {"action": "append" if several else "store", "type": get_args(kind)[0] if several else kind}
            given |= {key: one.metadata[key] for key in ("metavar", "choices") if one.metadata[key]}
        name = option_name(one)
        try:
            group.addoption(f"--{name}", f"--fwlab-{name}", **given)
        except ValueError:  # taken
            group.addoption(f"--fwlab-{name}", **given)


def _options(config: pytest.Config) -> GradingOptions:
    from fwlab.grading.options import GradingOptions

    found = {one.name: config.getoption(f"fwlab_{one.name}") for one in fields(GradingOptions)}
    given = [Path(word) for word in config.option.file_or_dir]  # tests, as pytest usually takes them
    return GradingOptions(**found | {"tests": [*(found["tests"] or []), *given] or None})


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep pytest from loading a class's conftest.py, or its configuration.

    pytest takes the folder behind --submissions for one of tests, and looks for both there. Nothing of a configuration
    has had an effect yet: what it names could only be imported from folders that it has not been able to add.
    """
    options = early_config.known_args_namespace
    if not options.fwlab or options.fwlab_submissions is None:
        return
    options.noconftest = True
    found = early_config.inipath
    if found is not None and found.resolve().is_relative_to(options.fwlab_submissions.resolve()):
        raise pytest.UsageError(f"{found}: pytest took its configuration from the class's folder\n  next: remove it")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let pytest's summary say why something is inconclusive."""
    if config.getoption("fwlab"):
        config.option.reportchars += "s"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read what is to be graded, before any machine starts."""
    config.stash[_ENDS] = set()
    config.addinivalue_line("markers", MEASURES)
    if not config.getoption("fwlab"):
        return
    if config.getoption("dist", "no") != "no":  # pytest-xdist
        why = "it hands out single tests, and a ruleset's tests belong together"
        raise pytest.UsageError(f"-n does not grade: {why}\n  next: --workers N for N sets of machines")
    from rich.console import Console

    from fwlab.checkout.project import find_project
    from fwlab.grading import checks
    from fwlab.grading.engine import Engine
    from fwlab.grading.grading_plan import plan_grading
    from fwlab.grading.own_tests import files_of_tests
    from fwlab.report.progress import listener

    announce = functools.partial(_announce, config)
    try:
        plan = plan_grading(find_project(Path(config.invocation_params.dir)), _options(config))
    except FwlabError as error:
        raise pytest.UsageError(str(error)) from error
    stack = contextlib.ExitStack()
    config.add_cleanup(stack.close)
    if plan.submissions is not None:
        stack.callback(plan.submissions.close)
    events = stack.enter_context(listener(Console(stderr=True), announce=announce))
    config.stash[_ENGINE] = stack.enter_context(Engine(plan, announce, events=events))
    try:
        own = {
            str(path.resolve()): (lab, name)
            for lab, context in plan.contexts.items()
            for name, path in files_of_tests(context.lab, plan.options.tests).items()
        }
    except FwlabError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_OWN_TESTS] = own
    config.args = [str(checks.__file__), *own]
    config.option.importmode = "importlib"  # files of several labs may have one name
    # A time limit (`timeout`) ends this command as Ctrl-C does, so that the machines are destroyed.
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _announce(config: pytest.Config, text: str) -> None:
    """Print at once, past pytest's capture: a grading that waits for another would otherwise seem to hang."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        print(f"\n{text}", file=sys.stderr, flush=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Tell the engine which works were chosen."""
    if _ENGINE not in session.config.stash or session.config.option.collectonly:
        return
    engine = session.config.stash[_ENGINE]
    chosen: dict[str, set[str]] = {}
    for item in session.items:
        lab, work = _about(item)
        chosen.setdefault(lab, set()).update([work.name] if work is not None else [])
    works = engine.plan.works
    try:
        engine.begin({lab: [work for work in works[lab] if work.name in names] for lab, names in chosen.items()})
    except FwlabError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine of this grading."""
    return request.config.stash[_ENGINE]


@pytest.hookimpl(trylast=True)  # behind the parameters of a test itself
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each item that a lab declares."""
    if _ENGINE not in metafunc.config.stash:
        return
    if str(metafunc.definition.path) in metafunc.config.stash[_OWN_TESTS]:
        _own_rows(metafunc)
    if "engine" not in metafunc.fixturenames:
        return
    rows: list[tuple[Any, ...]] = []
    for lab_id, context in metafunc.config.stash[_ENGINE].plan.contexts.items():
        rows += [(lab_id, *row) for row in _rows(metafunc, lab_id, context.lab)]
    possible = ("package", "module", "sysctl", "case", "work", "check")
    names = ["lab", *(name for name in possible if name in metafunc.fixturenames)]
    metafunc.parametrize(names, rows, ids=["-".join(_name(part) for part in row) for row in rows])


def _own_rows(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a submission is one for each work that is marked."""
    from fwlab.grading.fixtures import OF_SUBMISSION
    from fwlab.model.verdict import Outcome

    lab, _ = metafunc.config.stash[_OWN_TESTS][str(metafunc.definition.path)]
    if OF_SUBMISSION & set(metafunc.fixturenames):
        works = metafunc.config.stash[_ENGINE].plan.works[lab]
        marked = [work for work in works if work.expected is Outcome.PASS]
        metafunc.fixturenames.append("work")  # nothing asks for it: the test runs on a worker
        metafunc.parametrize("work", marked, ids=[work.name for work in marked])


def _rows(metafunc: pytest.Metafunc, lab_id: str, lab: Lab) -> list[tuple[Any, ...]]:
    from fwlab.grading.checks import CheckAt
    from fwlab.measure.plan import chosen_cases
    from fwlab.model.verdict import Outcome

    fixtures, plan = metafunc.fixturenames, metafunc.config.stash[_ENGINE].plan
    works: list[Work] = plan.works[lab_id]
    marked = [work for work in works if work.expected is Outcome.PASS]
    if "package" in fixtures:
        return [(package,) for package in lab.needs.packages]
    if "module" in fixtures:
        return [(module,) for module in lab.needs.modules]
    if "sysctl" in fixtures:
        return [(item,) for item in lab.needs.sysctls.items()]
    if "case" in fixtures:
        return [(case.id,) for case in chosen_cases(lab, [], quick=True)] if plan.with_cases else []
    if "check" in fixtures:
        return [(work, CheckAt(index, check.id)) for work in marked for index, check in enumerate(work.exercise.checks)]
    if metafunc.function.__name__ == "test_grader_refuses":
        return [(work,) for work in works if work.expected is Outcome.FAIL]
    return [(work,) for work in marked] if "work" in fixtures else [()]


def _name(part: object) -> str:
    if isinstance(part, tuple):  # a sysctl and its value
        return str(part[0])
    return str(getattr(part, "name", part))


def _about(item: pytest.Item) -> tuple[str, Work | None]:
    """The lab of a test, and the work that it is about."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    lab, _ = item.config.stash[_OWN_TESTS].get(str(item.path), (None, ""))
    return lab or parameters["lab"], parameters.get("work")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests by work: first what the DUT holds, then the checks."""
    if _ENGINE not in config.stash:
        return
    plan = config.stash[_ENGINE].plan

    def order(item: pytest.Item) -> tuple[int, int]:
        lab, work = _about(item)
        return list(plan.contexts).index(lab), plan.works[lab].index(work) + 1 if work is not None else 0

    # Without parameters (no case of a class, say) pytest makes one skipped test. Leave it out.
    items[:] = sorted((item for item in items if isinstance(_about(item)[0], str)), key=order)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Show what became of an instructor's or a lab's own test, which ran on a worker."""
    if _ENGINE not in item.config.stash or str(item.path) not in item.config.stash[_OWN_TESTS]:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _own_reports(item):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _own_reports(item: pytest.Item) -> Iterator[pytest.TestReport]:
    from fwlab.model.verdict import Outcome

    engine, (lab, work) = item.config.stash[_ENGINE], _about(item)
    file = item.config.stash[_OWN_TESTS][str(item.path)][1]
    ids = item.callspec._idlist[: -1 if work is not None else None] if hasattr(item, "callspec") else []
    *outer, last = item.nodeid.partition("::")[2].split("::")
    name = last.partition("[")[0] + (f"[{'-'.join(ids)}]" if ids else "")
    check = "::".join([file, *outer, name])
    outcome, text = "passed", ""
    try:
        if work is None:
            found = engine.machine_test(lab, check)
        else:
            mark = engine.mark(lab, work)
            found = next((one for one in mark.checks if one.check == check), None)
        if found is None:
            outcome, text = "skipped", "it was skipped, or the ruleset was not loaded"
        elif found.outcome is Outcome.FAIL:
            outcome, text = "failed", found.text
            item.config.stash[_ENDS].add("failed")
    except CannotMeasure as error:
        item.config.stash[_ENDS].add("unmeasured")
        outcome, text = "skipped", f"inconclusive: {error}"
    path, line, _ = item.location
    longrepr = (path, (line or 0) + 1, f"Skipped: {text}") if outcome == "skipped" else text or None
    for when in ("setup", "call", "teardown"):
        said = (outcome, longrepr) if when == "call" else ("passed", None)
        yield pytest.TestReport(item.nodeid, item.location, dict(item.keywords), *said, when)  # type: ignore[arg-type]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Report what a grading could not measure as skipped. In other tests the same error is a failure."""
    report = (yield).get_result()
    if _ENGINE not in item.config.stash:
        return
    from fwlab.grading.grader import Inconclusive

    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, (Inconclusive, CannotMeasure)):
        # Reported as skipped, also in JUnit XML: in a grade book it must not count as a failure.
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
    """Save the marks and set pytest's exit code."""
    if _ENGINE not in session.config.stash:
        return
    engine, ends = session.config.stash[_ENGINE], session.config.stash[_ENDS]
    try:
        engine.close()
    except Exception as error:  # noqa: BLE001 - or pytest would end with a traceback and the code of a failed check
        ends.add("unmeasured")
        _announce(session.config, str(error))
    if exitstatus not in (0, 1):
        return
    if "failed" in ends:
        session.exitstatus = EXIT_FAIL
    elif "unmeasured" in ends or engine.trouble is not None:
        session.exitstatus = EXIT_UNMEASURED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print each lab's marks, where they are, and the next command."""
    if _ENGINE not in config.stash:
        return
    engine = config.stash[_ENGINE]
    for lab in engine.labs:
        terminalreporter.section(f"marks of {lab}")
        terminalreporter.write(engine.marks(lab))
        for line in engine.closing(lab):
            terminalreporter.write_line(line)
