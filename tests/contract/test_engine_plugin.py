# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in's traffic engine is found by its entry point, and used only if it is asked for."""

from __future__ import annotations

from pathlib import Path

from tests import contract
from tests.fakes import factories

SCRIPT = """
from fwlab.checkout.project import find_project, load_topology
from fwlab.generator import selection
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput
from fwlab.testbed.selection import TestbedRequest, choose
project = find_project()
testbed, topology = choose(TestbedRequest("virtual")), load_topology(project)
print(*selection.ENGINES, selection.choose(project).name)
choice = selection.choose(project, "recorder")
print(selection.make(choice, None, topology, testbed))
with selection.make_tcp_endpoints(choice, None, None, topology, testbed)(Connections(port=8080)) as made:
    print(made)
try:
    selection.choose(project, "tape")
except BadInput as error:
    print(error)
"""


def test_it_is_used_only_if_it_is_asked_for(tmp_path: Path) -> None:
    factories.small_checkout(tmp_path, "lab98-trouble")
    done = contract.python(SCRIPT, plugins=contract.PLUGINS / "engine", checkout=tmp_path)
    assert done.stdout.splitlines() == [
        "recorder trex replay replay",
        "an engine, emulated: True",
        "endpoints on port 8080",
        "unknown engine tape",
        "  next: use auto, recorder, trex or replay",
    ], done.stderr
