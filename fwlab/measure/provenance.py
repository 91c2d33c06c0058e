# SPDX-License-Identifier: GPL-2.0-or-later
"""The conditions that a run records beside its results: commit, versions, host, testbed, DUT."""

import datetime
import subprocess

import fwlab
from fwlab.host.facts import host_facts
from fwlab.host.project import Project
from fwlab.measure.context import RunContext
from fwlab.model.results import DutFacts, Run
from fwlab.testbed.machines import Machines


def new_run(context: RunContext, machines: Machines, engine: str, dut: DutFacts) -> Run:
    """A run without results; `engine` is the name of the engine that plays its traffic."""
    return Run(
        lab=context.lab.id,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        commit=commit(context.project),
        fwlab=fwlab.__version__,
        seed=context.seed,
        host=host_facts(),
        testbed=machines.testbed.facts(machines.made, engine),
        dut=dut,
    )


def commit(project: Project) -> str:
    """The checkout's commit, with a plus sign if tracked files differ from it; "unknown" outside git."""
    git = ["git", "-C", str(project.root)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    if head.returncode:
        return "unknown"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
