# SPDX-License-Identifier: GPL-2.0-or-later
"""The fixtures of an instructor's and of a lab's own tests, which run on a worker (own_tests.py).

Importing this module into a conftest.py makes it a plugin of the pytest that runs them. What they may ask about is in a
file of facts; the nodes are reached by SSH. Each work has a pytest of its own, so what takes long to import stands in
the fixture that needs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fwlab.grading.options import MEASURES

if TYPE_CHECKING:
    from testinfra.host import Host

    from fwlab.model.lab import Lab
    from fwlab.model.results import Measured, Run

#: A test that asks for one of these is run for each submission, while its ruleset is on the DUT.
OF_SUBMISSION = {"submission", "ruleset", "delivered", "record"}
_RESULTS = pytest.StashKey[dict[str, list[str]]]()


@dataclass(frozen=True)
class Submission:
    """What was handed in: who, for which exercise, and the text of each file by its name."""

    student: str
    exercise: str
    files: dict[str, str]


@pytest.fixture(scope="session")
def facts(pytestconfig: pytest.Config) -> dict[str, Any]:
    """Everything that the tests may ask about."""
    return _facts(pytestconfig)


@pytest.fixture(scope="session")
def dut(facts: dict[str, Any]) -> Host:
    """The DUT, as Testinfra's Host, with root's rights."""
    return _host(facts, "dut")


@pytest.fixture(scope="session")
def generator(facts: dict[str, Any]) -> Host:
    """The generator."""
    return _host(facts, "generator")


@pytest.fixture(scope="session")
def sink(facts: dict[str, Any]) -> Host:
    """The sink."""
    return _host(facts, "sink")


@pytest.fixture(scope="session")
def host(dut: Host) -> Host:
    """The DUT: Testinfra's own name for the machine that is tested."""
    return dut


@pytest.fixture(scope="session")
def lab(facts: dict[str, Any]) -> Lab:
    """The lab, as it is declared."""
    from fwlab.checkout.project import Project
    from fwlab.measure.labs import load_lab

    return load_lab(Project(Path(facts["project"])), facts["lab"])


@pytest.fixture(scope="session")
def run(facts: dict[str, Any]) -> Run:
    """The session's run: testbed, DUT and the cases that were measured."""
    from fwlab.model.results import Run

    return Run.model_validate(facts["run"])


@pytest.fixture
def submission(facts: dict[str, Any]) -> Submission:
    """What was handed in. Its ruleset is on the DUT while the test runs."""
    return Submission(**facts["submission"])


@pytest.fixture
def ruleset(submission: Submission) -> dict[str, str]:
    """The files of the ruleset that is loaded on the DUT, by name."""
    return submission.files


@pytest.fixture
def record(facts: dict[str, Any]) -> Measured:
    """What was measured with the submission: every trial."""
    from fwlab.model.results import Measured

    return Measured.model_validate(facts["measured"])


@pytest.fixture
def capacity(run: Run, facts: dict[str, Any]) -> Callable[..., float]:
    """capacity("case"): packets per busy second of a case that the test's mark `measures` names; capacity(): of the
    submission."""
    from fwlab.judge.statistics import figure
    from fwlab.metrics.registry import METRICS
    from fwlab.model.metric import MAIN_METRIC
    from fwlab.model.results import Measured

    def found(case: str | None = None) -> float:
        measured = run.case(case) if case is not None else Measured.model_validate(facts["measured"])
        known = figure(measured, METRICS[MAIN_METRIC], run.testbed) if measured is not None else None
        if known is None:
            pytest.fail(
                f'{case or "this ruleset"} has no capacity here: mark the test with @pytest.mark.measures("{case}")'
            )
        return known.median

    return found


@pytest.fixture
def delivered(record: Measured, run: Run) -> Callable[[str], float]:
    """delivered("class"): the share of this class's packets that arrived, from 0 to 1."""
    from fwlab.judge.statistics import figure
    from fwlab.metrics.delivery import DELIVERED

    def found(traffic_class: str) -> float:
        known = figure(record, DELIVERED, run.testbed, traffic_class)
        if known is None:
            pytest.fail(f"no packet of the class {traffic_class} was counted")
        return known.median

    return found


def _facts(config: pytest.Config) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(config.getoption("fwlab_facts")).read_text())
    return found


def _host(facts: dict[str, Any], role: str) -> Host:
    import testinfra

    return testinfra.get_host(f"ssh://{role}", ssh_config=facts["ssh_config"], sudo=True)


# -- the plugin --


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the program that runs this pytest."""
    parser.addoption("--fwlab-facts", help="file of facts")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and begin to keep results."""
    config.addinivalue_line("markers", MEASURES)
    config.stash[_RESULTS] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave those that are not asked for now: of the machines, or of a submission."""
    about = _facts(config).get("submission")
    if config.getoption("collectonly"):
        return
    chosen = [item for item in items if of_submission(item) == (about is not None)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def of_submission(item: pytest.Item) -> bool:
    """Whether a test needs a submission."""
    return bool(OF_SUBMISSION & set(getattr(item, "fixturenames", ())))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what became of each test: the assertion, without a traceback."""
    report = yield
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        text = report.longreprtext if crash is None else str(crash.message)
        item.config.stash[_RESULTS].setdefault(item.nodeid, [report.outcome, text])
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results, or what was collected."""
    facts, items = _facts(session.config), session.items
    if session.config.getoption("collectonly"):
        found: dict[str, Any] = {
            item.nodeid: {
                "of_submission": of_submission(item),
                "cases": [case for mark in item.iter_markers("measures") for case in mark.args],
            }
            for item in items
        }
    else:
        found = session.config.stash[_RESULTS]
    Path(facts["answer"]).write_text(json.dumps(found))
