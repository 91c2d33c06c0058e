# SPDX-License-Identifier: GPL-2.0-or-later
"""What has been run where: a table of testbeds, links and DUTs, with the newest published run of each."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from fwlab.checkout.project import Project, display_path, find_project
from fwlab.checkout.raw_results import raw_results, read_document
from fwlab.dut.registry import DUTS
from fwlab.judge.statistics import figure
from fwlab.measure.saved_runs import run_in
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured, Run
from fwlab.report import formatting
from fwlab.testbed.link_kinds import LINKS
from tools.markdown import block, table

#: Testbed and accelerator, as results name them.
MACHINES = (("virtual", "tcg"), ("virtual", "kvm"), ("real", "kvm"), ("real", "tcg"))
#: A virtual testbed counts instructions, which KVM does not let QEMU do.
IMPOSSIBLE = {("virtual", "kvm")}
HEADS = ("testbed", "links", "DUT", "last run", "on", "a figure of it", "raw results")
#: Classes of hosts that are emulated, in whole or in part (tests/nested_host, tests/arm64_host), in words.
EMULATED = {"nested-host": "emulated", "arm64-host": "QEMU for arm64, emulated on"}

Setup = tuple[str, str, str, str]


def where_run() -> str:
    """A table for guides/where-run.md: one row for each testbed, kind of link and DUT, whether it ever ran or not."""
    return block(setups_of(find_project()))


def setups_of(project: Project) -> str:
    """The same for the results of any project. Raises BadInput for a file there that cannot be read."""
    newest: dict[Setup, tuple[Path, Run]] = {}
    for path, run in _published(project):
        bed = run.testbed
        for link in bed.link.split(", "):
            setup = (bed.name, bed.accelerator, link, run.dut.system)
            if setup not in newest or _rank(newest[setup][1]) < _rank(run):
                newest[setup] = (path, run)
    beds = [bed for bed in MACHINES if bed not in IMPOSSIBLE]
    setups = [(*bed, link, dut) for bed, link, dut in itertools.product(beds, LINKS, DUTS)]
    strays = sorted(setup for setup in newest if setup not in setups)
    rows = (_row(project, setup, newest.get(setup)) for setup in [*setups, *strays])
    return table(HEADS, rows).replace("  |", " |")


def _rank(run: Run) -> tuple[bool, bool, str]:
    """Runs of cases before gradings, hosts before emulated ones, then the newest."""
    return bool(run.cases), run.host.host_class not in EMULATED, run.started


def _published(project: Project) -> Iterator[tuple[Path, Run]]:
    """Every run under results/. Other documents there, such as benchmarks of repeatability, are no runs."""
    for path in raw_results(project, "*/*"):
        text = read_document(path)
        if "testbed" in json.loads(text):
            yield path, run_in(text, display_path(project, path), "restore the file from git")


def _row(project: Project, setup: Setup, found: tuple[Path, Run] | None) -> tuple[str, ...]:
    name, accelerator, link, dut = setup
    what = (f"{name}, {accelerator.upper()}", link, dut)
    if found is None:
        return *what, "never", "", "", ""
    path, run = found
    cores = f"{run.host.cores} core{'' if run.host.cores == 1 else 's'}"
    emulated = EMULATED.get(run.host.host_class or "", "")
    host = f"{emulated}{' ' if emulated else ''}{run.host.cpu.split('(')[0].split()[0]}, {cores}"
    where = f"{host}; {formatting.kernel(run.dut)}"
    return *what, run.started[:10], where, _figure(run), f"`{display_path(project, path)}`"


def _figure(run: Run) -> str:
    """The first case or exercise that has one."""
    for measured in (*run.cases, *run.exercises):
        value = figure(measured, METRICS[measured.metric], run.testbed)
        if value is not None and not measured.problems:
            median = formatting.quantity(value.median, METRICS[measured.metric])
            return f"{run.lab.split('-')[0]}, {_named(measured)}: {median} ({formatting.percent(value.spread)})"
    return "none"


def _named(measured: Measured) -> str:
    return f"`{measured.ruleset if '/' in measured.ruleset else measured.id}`"
