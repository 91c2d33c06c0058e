# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the published figures repeat: over boots, on another host, and in a later run of all labs."""

import json
import statistics as stats
from collections.abc import Iterator

from fwlab.host.project import Project, find_project, lab_ids
from fwlab.judge.statistics import figure
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run, published_files
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
    over_boots = {f"lab03 {case}": found["spread_over_all_medians"] for case, found in boots.items()}
    yield _row("lab03, three boots, idle and busy host, capacity: spread of all medians", over_boots)
    in_a_boot = {
        f"lab03 {case}, {host} host": found[host]["largest_spread_in_a_boot"]
        for case, found in boots.items()
        for host in ("idle", "busy")
    }
    yield _row("the same: spread of the trials of one boot", in_a_boot)
    limits = json.loads((lab03.parent / "lab12-resolver" / "2026-11-26-repeatability.json").read_bytes())["spreads"]
    shares = {
        f"lab12 {case}": found["survival"]["spread_over_all_medians"]
        for case, found in limits.items()
        if "survival" in found
    }
    yield _row("lab12, twelve runs over three boots, idle and busy host, shares behind a limit: spread", shares)
    hosts = [load_run(lab03 / f"{name}.json", "lab03-ipset") for name in ("2026-11-20-full", "2026-11-21-other-host")]
    cpus = " and ".join(run.host.cpu.split("(")[0].split()[0] for run in hosts)
    yield _row(f"lab03 on two hosts ({cpus}), capacity", differences(hosts[0], hosts[1], METRICS["capacity"]))
    yield _row("the same, load time", differences(hosts[0], hosts[1], METRICS["load_time"]))
    every: dict[str, float] = {}
    for lab_id in lab_ids(project):
        for path in published_files(project, load_lab(project, lab_id)):
            again = sorted(path.parent.glob(f"*{path.name[10:].replace('full', 'labs')}"))
            if again:
                one, two = load_run(path, lab_id), load_run(again[-1], lab_id)
                every |= differences(one, two, METRICS["capacity"])
    yield _row("all labs in another boot (`*-full.json` and `*-labs.json`), capacity", every)


def _row(what: str, apart: dict[str, float]) -> str:
    median, ninth = stats.quantiles(apart.values(), n=10, method="inclusive")[4::4]
    worst = max(apart, key=lambda case: apart[case])
    cells = [what, str(len(apart)), *(f"{share * 100:.2f} %" for share in (median, ninth))]
    return f"| {' | '.join(cells)} | {apart[worst] * 100:.2f} % ({worst}) |"
