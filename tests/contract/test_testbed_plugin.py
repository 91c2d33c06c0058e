# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in's testbed and link kind are found through entry points and used without a change in fwlab/."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.checkout.raw_results import read_document
from fwlab.measure.saved_runs import load_run
from fwlab.model.registry import IncompleteKind, Registry
from fwlab.report.model import build_model
from fwlab.testbed.testbeds import checked
from tests import ROOT, contract
from tests.checkout import lab_named

LAB = "lab03-ipset"

#: A libvirt domain of a DUT made for the plug-in's testbed and link.
XML = """<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>made-up</name>
  <devices><interface type='avian'/><interface type='avian'/></devices>
  <qemu:commandline><qemu:arg value='-icount'/><qemu:arg value='shift=5,sleep=on'/></qemu:commandline>
</domain>
"""
#: What the code says of machines with the plug-in's testbed and links.
FACTS = """
import json, sys
from fwlab.checkout.project import find_project, load_topology
from fwlab.testbed.choices import link_kinds
from fwlab.testbed.machine_record import from_command_line, machines_made
from fwlab.testbed.selection import TestbedRequest, choose, settle
lab = sys.argv[1]
project = find_project()
topology = load_topology(project)
made = machines_made(project, topology, 3, lab)
chosen, settled = choose(TestbedRequest("slow_motion")), settle(TestbedRequest(), made, lab)
line = ["-accel", "tcg", "-icount", "shift=5", "-netdev", "avian,id=x", "-netdev", "user,id=m"]
print(json.dumps({
    "environment": chosen.environment(),
    "why": chosen.why,
    "levels": len(settled.kind.throttle),
    "throttled": settled.throttled,
    "facts": settled.facts(made, "replay").model_dump(),
    "running": [from_command_line(line).testbed, from_command_line(line).link],
    "links": [kind.name for kind in link_kinds(topology)],
}))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose links are pigeons."""
    root = tmp_path / "checkout"
    (root / "labs").mkdir(parents=True)
    for folder in (LAB, "common"):
        shutil.copytree(ROOT / "labs" / folder, root / "labs" / folder, ignore=shutil.ignore_patterns("work"))
    topology = (ROOT / "topology.yml").read_text()
    (root / "topology.yml").write_text(topology.replace("kind: socket", "kind: pigeon"))
    return root


def python(checkout: Path, *words: object, **variables: Any) -> subprocess.CompletedProcess[str]:
    own = {"plugins": contract.PLUGINS / "testbed", "FWLAB_PORT_OFFSET": "9500"}
    return contract.python(*words, checkout=checkout, **own | variables)


def fwlab(checkout: Path, *words: object, **variables: Any) -> subprocess.CompletedProcess[str]:
    return python(checkout, "-m", *words, **variables)


def test_vagrant_defines_machines_of_the_plugin(checkout: Path) -> None:
    done = fwlab(checkout, "fwlab.machines", "plan", FWLAB_TESTBED="slow_motion")
    assert done.returncode == 0, done.stderr
    machines = json.loads(done.stdout)["machines"]
    assert [kind for machine in machines.values() for kind, _ in machine["networks"]] == ["avian"] * 4
    assert machines[LAB]["qemu_arguments"].count("shift=5,sleep=on") == 1
    assert not any(machine["savable"] for machine in machines.values())


def test_it_is_chosen_recorded_and_part_of_the_facts(checkout: Path) -> None:
    bin_folder = checkout / "bin"
    bin_folder.mkdir()
    (bin_folder / "virsh").write_text(f"#!/bin/sh\ncat <<'END'\n{XML}END\n")
    (bin_folder / "virsh").chmod(0o755)
    path = f"{bin_folder}:{os.environ['PATH']}"
    for chosen in ({"FWLAB_TESTBED": "slow_motion"}, {}):  # the second time, only the record names it
        fwlab(checkout, "fwlab.machines", "record", LAB, "box-of-dut", PATH=path, **chosen)
        record = json.loads((checkout / ".fwlab" / LAB / "machines.json").read_text())
        assert (record["testbed"], record["machines"]["dut"]["link"]) == ("slow_motion", "pigeon")
    done = contract.python(
        FACTS, LAB, plugins=contract.PLUGINS / "testbed", checkout=checkout, FWLAB_PORT_OFFSET="9500"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["environment"] == {"FWLAB_TESTBED": "slow_motion", "FWLAB_ACCEL": "tcg"}
    assert found["why"] == "asked for; it always emulates"
    assert (found["levels"], found["throttled"]) == (2, True)
    facts = {"name": "slow_motion", "clock": "instructions", "ns_per_instruction": 32, "link": "pigeon"}
    facts |= {"ranges": "portable", "note": "measured in slow motion"}
    assert facts.items() <= found["facts"].items()
    assert found["links"] == ["pigeon"]
    assert found["running"] == ["slow_motion", "pigeon"]


def test_the_links_requirements_are_reported(checkout: Path) -> None:
    done = fwlab(checkout, "fwlab.cli.entry", "doctor", "--json")
    findings = {finding["item"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert findings["link pigeon"] == {
        "item": "link pigeon",
        "ok": False,
        "says": "no pigeon at home",
        "next": "open the window",
        "required": True,
    }


@pytest.mark.parametrize("ranges", ["portable", pytest.param("none", marks=pytest.mark.thorough)])
def test_its_results_are_judged_by_the_ranges_it_names(checkout: Path, tmp_path: Path, ranges: str) -> None:
    path = ROOT / "results" / LAB / "2026-11-20-full.json.gz"
    run, own = json.loads(read_document(path)), {"name": "slow_motion", "link": "pigeon", "ranges": ranges}
    run["testbed"] |= own | {"note": "measured in slow motion"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    words = ["report", LAB, tmp_path / "run.json", "--output", tmp_path, "--json"]
    found = json.loads(fwlab(checkout, "fwlab.cli.entry", *words).stdout)
    assert found["testbed"].items() >= own.items()
    usual = sum(len(row.verdicts) for row in build_model(lab_named(LAB), load_run(path, LAB)).cases)
    assert usual > 0
    assert (sum(len(case["checks"]) for case in found["cases"]) == usual) is (ranges == "portable")
    page = next(tmp_path.glob("*.html")).read_text()
    assert "measured in slow motion" in page
    assert "replay over pigeon" in page


@pytest.mark.parametrize("words", [("fwlab.cli.entry", "doctor"), ("fwlab.machines", "plan")])
def test_a_link_kind_that_is_not_installed_is_named(checkout: Path, words: tuple[str, ...]) -> None:
    done = fwlab(checkout, *words, plugins=None)
    said = "links.generator-dut.kind: unknown link kind pigeon; there are: macvtap, socket, sriov, virtio"
    assert said in done.stderr
    assert "next: fix topology.yml" in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("count", [0, 2])
def test_exactly_one_testbed_is_the_default(count: int) -> None:
    made_up = SimpleNamespace(name="a", default=count > 0), SimpleNamespace(name="b", default=count > 1)
    with pytest.raises(IncompleteKind, match="one testbed must be the default"):
        checked(Registry("testbed", [("a test", kind) for kind in made_up]))
