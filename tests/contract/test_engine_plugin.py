# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in's traffic engine is found by its entry point, chosen by `--engine` and used, without a change in fwlab/."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import ROOT, contract
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
    """A checkout with one small lab."""
    folder = tmp_path / "checkout" / "labs" / LAB
    (folder / "work").mkdir(parents=True)
    for name in ("raw-drop", "rules", "ex1-block/start"):
        (folder / "rulesets" / name).mkdir(parents=True)
        (folder / "rulesets" / name / "rules.iptables").write_text("*raw\n-A PREROUTING -j DROP\nCOMMIT\n")
    shutil.copy(ROOT / "topology.yml", tmp_path / "checkout")
    shutil.copy(ROOT / "tests/data/errors/good.yml", folder / "lab.yml")
    (folder / "profile.py").write_text(factories.PROFILE)
    return tmp_path / "checkout"


@pytest.fixture
def environment() -> dict[str, str]:
    """Environment variables with the plug-in installed."""
    return contract.environment(contract.PLUGINS / "engine")


def python(script: str, *words: str, checkout: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", textwrap.dedent(script), *words]
    return subprocess.run(argv, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_it_is_chosen_by_name_and_driven(checkout: Path, environment: dict[str, str]) -> None:
    words = ["run", LAB, "raw-drop", "--engine", "recorder", "--testbed", "virtual", "--json"]
    done = python(DRIVER, *words, checkout=checkout, environment=environment)
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


def test_it_is_not_used_unless_asked_for(checkout: Path, environment: dict[str, str]) -> None:
    script = """
        from fwlab.generator.selection import ENGINES, choose
        from fwlab.checkout.project import find_project
        print(*ENGINES, choose(find_project()).name)
    """
    assert python(script, checkout=checkout, environment=environment).stdout.split() == [
        "recorder",
        "trex",
        "replay",
        "replay",
    ]


def test_an_unknown_engine_is_refused_with_all_names(checkout: Path, environment: dict[str, str]) -> None:
    done = python(DRIVER, "run", LAB, "--engine", "tape", checkout=checkout, environment=environment)
    assert done.returncode == 2
    assert "fwlab: unknown engine tape\n  next: use auto, recorder, trex or replay\n" in done.stderr


def test_its_own_tcp_clients_are_used_if_it_is_asked_for(checkout: Path, environment: dict[str, str]) -> None:
    script = """
        from fwlab.generator.selection import Choice, choose, make_tcp_endpoints
        from fwlab.checkout.project import find_project, load_topology
        from fwlab.model.declared_traffic import Connections
        from fwlab.testbed.selection import TestbedRequest
        from fwlab.testbed.selection import choose as choose_testbed
        project = find_project()
        testbed, topology = choose_testbed(TestbedRequest("virtual")), load_topology(project)
        endpoints = make_tcp_endpoints(choose(project, "recorder"), None, None, topology, testbed)
        with endpoints(Connections(port=8080)) as made:
            print(made)
    """
    done = python(script, checkout=checkout, environment=environment)
    assert done.stdout == "endpoints on port 8080\n", done.stderr
