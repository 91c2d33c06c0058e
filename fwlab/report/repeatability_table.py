# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the published figures repeat: over boots, on another host, and in a later run of all labs."""

from __future__ import annotations

import json
import statistics as stats
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fwlab.host.project import Project, find_project, lab_ids
from fwlab.judge.statistics import figure
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.metric import Metric
from fwlab.model.results import Run


def repeatability() -> str:
    """A table for guides/method.md: of two runs, how far the medians of each case lie apart."""
    rows = "\n".join(_rows(find_project()))
    return f"\n{rows}\n"


def differences(one: Run, two: Run, metric: Metric) -> dict[str, float]:
    """The difference of the two medians of each case that has this metric, as a share of the first."""
    found = {}
    for case in one.cases:
        again = two.case(case.id)
        if again is None or metric.name not in case.metrics:
            continue
        first, second = (figure(measured, metric, run.testbed) for measured, run in ((case, one), (again, two)))
        if first is not None and second is not None:
            found[f"{one.lab[:5]} {case.id}"] = abs(second.median / first.median - 1)
    return found


def _rows(project: Project) -> Iterator[str]:
    yield "| compared | figures | median | 90th percentile | largest |"
    yield "|---|---:|---:|---:|---|"
    lab03 = project.root / "results" / "lab03-ipset"
    boots = json.loads((lab03 / "2026-11-20-repeatability.json").read_bytes())["spreads"]
    yield _row("lab03, three boots, idle and busy host, capacity: spread of all medians", _over_boots(boots))
    yield _row("the same: spread of the trials of one boot", _in_a_boot(boots))
    hosts = [load_run(lab03 / f"{name}.json", "lab03-ipset") for name in ("2026-11-20-full", "2026-11-21-other-host")]
    cpus = " and ".join(run.host.cpu.split("(")[0].split()[0] for run in hosts)
    yield _row(f"lab03 on two hosts ({cpus}), capacity", differences(hosts[0], hosts[1], METRICS["capacity"]))
    yield _row("the same, load time", differences(hosts[0], hosts[1], METRICS["load_time"]))
    every: dict[str, float] = {}
    for lab_id in lab_ids(project):
        runs = [_newest(project, lab_id, kind) for kind in ("full", "labs")]
        if all(runs):
            one, two = (load_run(path, lab_id) for path in runs if path)
            every |= differences(one, two, METRICS["capacity"])
    yield _row("all labs in another boot (`*-full.json` and `*-labs.json`), capacity", every)


def _over_boots(boots: dict[str, Any]) -> dict[str, float]:
    return {f"lab03 {case}": found["spread_over_all_medians"] for case, found in boots.items()}


def _in_a_boot(boots: dict[str, Any]) -> dict[str, float]:
    """The largest spread of one boot's trials, for each case on an idle and on a busy host."""
    return {
        f"lab03 {case}, {host} host": found[host]["largest_spread_in_a_boot"]
        for case, found in boots.items()
        for host in ("idle", "busy")
    }


def _newest(project: Project, lab_id: str, kind: str) -> Path | None:
    return max((project.root / "results" / lab_id).glob(f"*-{kind}.json"), default=None)


def _row(what: str, apart: dict[str, float]) -> str:
    median, ninth = stats.quantiles(apart.values(), n=10, method="inclusive")[4::4]
    worst = max(apart, key=lambda case: apart[case])
    cells = [what, str(len(apart)), *(f"{share * 100:.2f} %" for share in (median, ninth))]
    return f"| {' | '.join(cells)} | {apart[worst] * 100:.2f} % ({worst}) |"
