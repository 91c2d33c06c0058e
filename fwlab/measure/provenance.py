# SPDX-License-Identifier: GPL-2.0-or-later
"""The conditions that a run records with its results: commit, versions, host, testbed, DUT."""

import datetime
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

import fwlab
from fwlab.checkout.project import Project
from fwlab.host.kvm_probe import BOX_ARCHITECTURE, QEMU, qemu_version
from fwlab.judge.clocks import CLOCKS
from fwlab.measure.calibration import calibrated, load_host_class
from fwlab.measure.context import RunContext
from fwlab.measure.core_models import model_of
from fwlab.model.results import CpuSettings, DutFacts, HostFacts, ModelledCore, Run
from fwlab.testbed.machines import Machines
from fwlab.testbed.qemu_process import pinning

#: What makes a figure besides the lab, as paths in git: the package, the engine, and what the images are built from.
INSTRUMENT = ("fwlab", "engine", "coresim", "provision", "packer", "topology.yml")


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
        trees=trees(context.project, context.lab.id),
        boxes=machines.made.boxes,
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
    found = trees(context.project, context.lab.id)
    own = {"lab": context.lab.id, "started": now, "seed": context.seed, "trees": found}
    return run.model_copy(update={**own, "cases": [], "exercises": [], "predictions": {}})


def trees(project: Project, lab_id: str) -> dict[str, str]:
    """By path, git's hash of each part of the commit that a run depends on; empty outside git."""
    paths = (*INSTRUMENT, "labs/common", f"labs/{lab_id}")
    listed = _git(project, "ls-tree", "--full-tree", "HEAD", *paths) or ""
    rows = (line.split("\t") for line in listed.splitlines())
    return {path: facts.split()[2] for facts, path in rows}


def commit(project: Project) -> str:
    """The checkout's commit, with a plus sign if tracked files differ from it; "unknown" outside git."""
    head = _git(project, "rev-parse", "--short=12", "HEAD")
    if head is None:
        return "unknown"
    return head.strip() + ("+" if _git(project, "status", "--porcelain", "-uno") else "")


def _git(project: Project, *words: str) -> str | None:
    """What git prints; None if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(project.root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout


CPUS = Path("/sys/devices/system/cpu")
_UNAFFECTED = "Not affected"


def cpu_settings(pinning: Mapping[str, str], cpus: Path = CPUS) -> CpuSettings:
    """The host's settings, and `pinning`. What the host does not report stays empty."""
    governors = {_read(path) for path in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    found = {path.name: _read(path) for path in sorted(cpus.glob("vulnerabilities/*"))}
    return CpuSettings(
        governors=sorted(governors - {""}),
        mitigations={name: says for name, says in found.items() if says and says != _UNAFFECTED},
        smt=_read(cpus / "smt" / "control"),
        pinning=dict(pinning),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def host_facts() -> HostFacts:
    """Facts about the host, without anything that names a person or a place."""
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    return HostFacts(
        cpu=_cpu_model(),
        cores=psutil.cpu_count() or 1,
        memory_mib=psutil.virtual_memory().total >> 20,
        os=release.get("PRETTY_NAME", platform.system()),
        kernel=platform.release(),
        qemu=qemu_version() if shutil.which(QEMU) else "not installed",
        libvirt=_libvirt_version(),
        load_average=os.getloadavg()[0],
        host_class=os.environ.get("FWLAB_HOST_CLASS"),
    )


def _cpu_model() -> str:
    """psutil does not know it. arm64 kernels give numbers, which lscpu(1) has names for."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = (line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name"))
    return next(models, "") or cpu_of_lscpu(_said_by(["lscpu"])) or "unknown"


def cpu_of_lscpu(said: str) -> str:
    """Vendor and model that lscpu printed, and the architecture if it is not that of the boxes; empty if none."""
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}
    machine = fields.get("Architecture", "")
    found = (fields.get("Vendor ID", ""), fields.get("Model name", ""), "" if machine == BOX_ARCHITECTURE else machine)
    return " ".join(word for word in found if word not in ("", "-"))


def _libvirt_version() -> str:
    if shutil.which("virsh") is None:
        return "not installed"
    return _said_by(["virsh", "--version"]).strip() or "unknown"


def _said_by(command: list[str]) -> str:
    """What a program prints in English; empty without it."""
    if shutil.which(command[0]) is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout
