# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure a DUT whose QEMU is arm64 code: python -m tests.arm64_host [--help]

Unpacks Debian 12's QEMU for arm64, and the user-mode emulator that runs it on an x86-64 host. The DUT of lab03 runs on
that QEMU, generator and sink on this host's own. The cases are measured by `fwlab run` and compared with the published
run. Writes results/arm64-host/DATE.json.gz, DATE.log and the raw results. It takes an hour on two cores.
"""

from __future__ import annotations

import argparse
import datetime
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fwlab.checkout.project import Project, find_project, load_topology
from fwlab.host.environment import cache_directory
from fwlab.host.kvm_probe import other_architecture
from fwlab.measure.labs import load_lab
from fwlab.measure.provenance import commit, host_facts
from fwlab.measure.saved_runs import load_run, published_runs
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, CannotMeasure, FwlabError
from tests.arm64_host.arm64_qemu import Arm64Qemu, arm64_qemu
from tests.arm64_host.steps import (
    LAB,
    Shell,
    agreement,
    continued,
    described_alike,
    environment,
    measure,
    reject_machines,
    runs_on_arm64,
)
from tests.nested_host.record import Record, chosen_cases, recorded
from tests.nested_host.steps import succeeds

PROJECT = find_project(Path(__file__))
CASES = ("raw-drop", "ipset-1000", "nft-rules-1024")
#: Stands in every document.
NOTE = "the DUT's QEMU is arm64 code, run by a user-mode emulator on an x86-64 host; generator and sink are not"


def main(words: Sequence[str] | None = None) -> int:
    """Exit 0 all agree, 1 a step did not, 2 bad usage, 3 it cannot be measured here, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="tests.arm64_host", description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--cases", default=",".join(CASES), help=f"cases of {LAB} (default: {','.join(CASES)})")
    parser.add_argument(
        "--restored", action="store_true", help="the DUT continues from a state that this host's own QEMU saved"
    )
    parser.add_argument("--keep", action="store_true", help="leave the machines running")
    parser.add_argument("--running", action="store_true", help="measure on the machines that an earlier run left")
    chosen = parser.parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cases = chosen_cases(PROJECT, LAB, chosen.cases)
        if machine := other_architecture():
            raise CannotMeasure(f"this host is {machine} itself", f"make lab LAB={LAB}")
        wanted = Wanted(cases, chosen.restored, chosen.running, chosen.keep)
        return EXIT_PASS if arm64_host(PROJECT, wanted) else EXIT_FAIL
    except FwlabError as error:
        sys.stderr.write(f"arm64 host: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("arm64 host: interrupted; the machines were destroyed\n")
        return 130


@dataclass(frozen=True)
class Wanted:
    """What a run is asked for. `restored`, `running`, `keep`: see main."""

    cases: tuple[str, ...]
    restored: bool = False
    running: bool = False
    keep: bool = False


def arm64_host(project: Project, wanted: Wanted) -> bool:
    """Everything, one run at a time; returns whether all figures agree. Raises CannotMeasure."""
    if not wanted.running:
        reject_machines(project)
    with recorded(project, "arm64-host", NOTE) as (folder, work, record):
        qemu = arm64_qemu(project.root, folder, folder / "unpack.log")
        record.facts = facts(project, qemu, wanted)
        _run(project, record, qemu, work, wanted)
    return record.ok


def facts(project: Project, qemu: Arm64Qemu, wanted: Wanted) -> dict[str, object]:
    """What was run on what."""
    host = host_facts()
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(project),
        "dut_qemu": f"arm64: {qemu.version()}",
        "user_mode_emulator": qemu.emulator_version(),
        "dut": "continued from a state that this host's own QEMU saved" if wanted.restored else "booted",
        "host": {"cpu": host.cpu, "cores": host.cores, "os": host.os, "kernel": host.kernel, "qemu": host.qemu},
        "load_average": host.load_average,
    }


def _run(project: Project, record: Record, qemu: Arm64Qemu, work: Path, wanted: Wanted) -> None:
    topology, lab = load_topology(project), load_lab(project, LAB)
    hidden = {str(work): "WORK", str(qemu.folder): "ARM64", str(cache_directory()): "CACHE", str(project.root): "."}
    destroy = "vagrant destroy", ["vagrant", "destroy", "-f", LAB]
    up = ["vagrant", "up", LAB]
    if wanted.restored and not wanted.running:
        own = Shell(project, record, environment(None, saved=True), hidden)
        try:
            own.step("vagrant up with this host's QEMU: a state is saved", up)
        finally:
            own.step(*destroy)
    shell = Shell(project, record, environment(qemu, saved=wanted.restored), hidden)
    published = published_runs(project, lab)[0]
    try:
        if not wanted.running and not shell.step("vagrant up", up, continued if wanted.restored else succeeds):
            raise CannotMeasure("the machines did not come up", "read the log in results/arm64-host")
        if runs_on_arm64(shell, topology, qemu):
            described_alike(shell, topology, qemu)
            for case, saved in measure(shell, wanted.cases, work):
                record.runs[case] = json.loads(saved.read_bytes())
                for step in agreement(load_run(saved, LAB), published, [case]):
                    record.add(step)
    finally:
        if not wanted.keep:
            shell.step(*destroy)
    if missing := [case for case in wanted.cases if case not in record.runs]:
        raise CannotMeasure(f"not measured: {', '.join(missing)}", "read the log in results/arm64-host")


if __name__ == "__main__":
    sys.exit(main())
