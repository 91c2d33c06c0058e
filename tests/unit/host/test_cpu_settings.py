# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of the host that a run on the host's clock records: governor, mitigations, and each node's CPUs."""

import os
import threading
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.measure.provenance import cpu_settings
from fwlab.model.errors import CannotMeasure
from fwlab.report.renderers.html import _conditions
from fwlab.testbed import qemu_process as pins
from tests import ROOT
from tests.fakes.factories import a_run, real


def test_settings_of_the_cpus(tmp_path: Path) -> None:
    for name, text in {
        "cpu0/cpufreq/scaling_governor": "performance\n",
        "cpu1/cpufreq/scaling_governor": "powersave\n",
        "cpu2/cpufreq/scaling_governor": "powersave\n",
        "cpufreq/policy0/scaling_governor": "ignored\n",
        "smt/control": "off\n",
        "vulnerabilities/meltdown": "Not affected\n",
        "vulnerabilities/spectre_v2": "Mitigation: Retpolines\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = cpu_settings({"dut": "2"}, tmp_path)
    assert found.governors == ["performance", "powersave"]
    assert found.mitigations == {"spectre_v2": "Mitigation: Retpolines"}
    assert (found.smt, found.pinning) == ("off", {"dut": "2"})
    nothing = cpu_settings({}, tmp_path / "none")
    assert (nothing.governors, nothing.mitigations, nothing.smt) == ([], {}, "")


def test_pinning_is_read_from_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process stands for the QEMU of the DUT; the other nodes' are not seen."""

    def qemu(_address: str, port: int) -> int:
        if port != load_topology(Project(ROOT)).ssh_port(3, "dut"):
            raise CannotMeasure("no QEMU forwards it", "")
        return os.getpid()

    monkeypatch.setattr(pins, "qemu_of", qemu)
    monkeypatch.setattr(pins, "vcpu_threads", lambda _pid: [threading.get_native_id()] * 2)
    assert pins.pinning(load_topology(Project(ROOT)), 3) == {"dut": _cpus()}


def _cpus() -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list:"))


def test_a_report_shows_them() -> None:
    run = a_run([], testbed=real())
    settings = cpu_settings({"dut": "2", "sink": "3"}, Path("/nowhere"))
    shown = dict(_conditions(run.model_copy(update={"host": run.host.model_copy(update={"cpu_settings": settings})})))
    assert shown["host's CPUs of each node"] == "dut on 2, sink on 3"
    assert shown["host's frequency governor"] == "none"
    assert not any("CPUs of" in name for name, _ in _conditions(run))
