# SPDX-License-Identifier: GPL-2.0-or-later
"""The host below the nodes, as results record it: hardware, programs, and settings of its CPUs."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from fwlab.host.kvm_probe import BOX_ARCHITECTURE, QEMU, qemu_version
from fwlab.model.results import CpuSettings, HostFacts

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


def host_facts(host_class: str | None = None) -> HostFacts:
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
        host_class=host_class or os.environ.get("FWLAB_HOST_CLASS"),
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
