# SPDX-License-Identifier: GPL-2.0-or-later
"""The conditions that a run records beside its results: commit, versions, host, testbed, DUT."""

import datetime
import subprocess

import fwlab
from fwlab.checkout.project import Project
from fwlab.host.facts import cpu_settings, host_facts
from fwlab.judge.clocks import CLOCKS
from fwlab.measure.calibration import calibrated, load_host_class
from fwlab.measure.context import RunContext
from fwlab.measure.core_models import model_of
from fwlab.model.results import DutFacts, ModelledCore, Run
from fwlab.testbed.machines import Machines
from fwlab.testbed.qemu_process import pinning


def new_run(context: RunContext, machines: Machines, engine: str, dut: DutFacts) -> tuple[Run, list[str]]:
    """A run without results, and why this host's calibration does not hold for it; usually nothing.

    `engine` is the name of the engine that plays its traffic. Raises BadInput for a calibration that cannot be read.
    """
    now = datetime.datetime.now(datetime.UTC)
    host = host_facts()
    if not CLOCKS[machines.testbed.kind.clock].repeats:
        settings = cpu_settings(pinning(context.topology, context.machines_lab.number))
        host = host.model_copy(update={"cpu_settings": settings})
    testbed = machines.testbed.facts(machines.made, engine)
    if context.core:
        core = ModelledCore(name=context.core, **model_of(context.core).facts(context.core))
        testbed = testbed.model_copy(update={"core": core})
    run = Run(
        lab=context.lab.id,
        started=now.isoformat(timespec="seconds"),
        commit=commit(context.project),
        fwlab=fwlab.__version__,
        seed=context.seed,
        host=host,
        testbed=testbed,
        dut=dut,
    )
    return calibrated(run, load_host_class(context.project), now)


def run_of_other_lab(run: Run, context: RunContext) -> Run:
    """A run without results under the same conditions as this one, begun now, of another lab on the same machines."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    own = {"lab": context.lab.id, "started": now, "seed": context.seed, "cases": [], "exercises": [], "predictions": {}}
    return run.model_copy(update=own)


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
