# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in's traffic engine is found by its entry point, chosen by `--engine` and used, without a change in fwlab/."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import contract
from tests.fakes import factories

LAB = "lab98-trouble"
#: `fwlab run`, with a session that plays each case's traffic and invents the figures.
DRIVER = """
import contextlib, json, sys
from fwlab.cli import main
from fwlab.generator import selection
from fwlab.testbed.selection import TestbedRequest, choose
from tests.fakes import factories

class Session:
    def __init__(self, context):
        self.context, choice = context, selection.choose(context.project, context.engine)
        self.engine = selection.make(choice, None, context.topology, choose(TestbedRequest("virtual")))
        self.run = factories.a_run([], testbed=factories.testbed(engine=self.engine.name))

    def require(self, metrics, specs):
        assert metrics == []

    def measure_cases(self, tasks):
        with contextlib.closing(self.engine):
            for task in tasks:
                self.engine.use(self.context.store, task.traffic)
                counted = self.engine.start(load=1000, count=50).wait(5)
                flood = self.engine.start().stop()
                sent = {"generator_sent": flood.sent, "generator_pps": counted.rate}
                self.run.cases.append(factories.measured(self.context.lab, task.id, 300e3, 300e3, 300e3, **sent))
        print(json.dumps(self.engine.calls), file=sys.stderr)

main.open_session = lambda context, tell: contextlib.nullcontext(Session(context))
main.main()
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    factories.small_checkout(tmp_path, LAB)
    return tmp_path


def python(script: str, *words: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    return contract.python(script, *words, plugins=contract.PLUGINS / "engine", checkout=checkout)


def test_it_is_chosen_by_name_and_driven(checkout: Path) -> None:
    words = ["run", LAB, "raw-drop", "--engine", "recorder", "--testbed", "virtual", "--json"]
    done = python(DRIVER, *words, checkout=checkout)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["testbed"]["engine"] == "recorder", done.stderr
    [calls] = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert calls[0] == "made, emulated: True"
    assert calls[1].startswith("use flood: ")
    assert calls[2:] == ["start at 1000 for 50", "wait", "start at None for None", "stop", "close"]
    run = json.loads(next(checkout.glob(f"reports/{LAB}/**/*.json")).read_text())
    [case] = run["cases"]
    assert (case["generator_sent"], case["generator_pps"]) == (70, 1000)
    page = next(checkout.glob(f"reports/{LAB}/**/*.html")).read_text()
    assert "recorder over socket" in page


def test_an_unknown_engine_is_refused_with_all_names(checkout: Path) -> None:
    done = python(DRIVER, "run", LAB, "--engine", "tape", checkout=checkout)
    assert done.returncode == 2
    assert "fwlab: unknown engine tape\n  next: use auto, recorder, trex or replay\n" in done.stderr


def test_it_is_used_only_if_it_is_asked_for_and_so_are_its_tcp_clients(checkout: Path) -> None:
    script = """
        from fwlab.generator.selection import ENGINES, choose, make_tcp_endpoints
        from fwlab.checkout.project import find_project, load_topology
        from fwlab.model.declared_traffic import Connections
        from fwlab.testbed.selection import TestbedRequest
        from fwlab.testbed.selection import choose as choose_testbed
        project = find_project()
        print(*ENGINES, choose(project).name)
        testbed, topology = choose_testbed(TestbedRequest("virtual")), load_topology(project)
        endpoints = make_tcp_endpoints(choose(project, "recorder"), None, None, topology, testbed)
        with endpoints(Connections(port=8080)) as made:
            print(made)
    """
    done = python(script, checkout=checkout)
    assert done.stdout == "recorder trex replay replay\nendpoints on port 8080\n", done.stderr
