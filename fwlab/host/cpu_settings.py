# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the settings of the host's CPUs from /sys."""

from collections.abc import Mapping
from pathlib import Path

from fwlab.model.results import CpuSettings

CPUS = Path("/sys/devices/system/cpu")
_UNAFFECTED = "Not affected"


def cpu_settings(pinning: Mapping[str, str], cpus: Path = CPUS) -> CpuSettings:
    """The host's settings beside `pinning`. What a host does not tell stays empty."""
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
