# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the published figures repeat: over boots, on another host, and in a later run of all labs."""

import json
import statistics as stats
from collections.abc import Iterator
from typing import Any

from fwlab.checkout.project import Project, find_project, lab_ids
from fwlab.judge.statistics import figure
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run, published_files
from fwlab.metrics.registry import METRICS
from fwlab.model.metric import Metric
from fwlab.model.results import Run

#: How the documents of `fwlab author repeatability` were measured.
RUNS = "twelve runs over three boots, idle and busy host"
#: Of what they have: words, metrics, and the least figure. Of a share below that, chance decides how far it is apart.
REPEATED = (
    ("capacity", ("capacity",), 0.0),
    ("throughput (NDR)", ("throughput",), 0.0),
    ("connections per second", ("connections",), 0.0),
    ("shares of at least 1 %", ("survival", "passed", "delivered"), 0.01),
)

#: Names of results begin with the day.
DAY = len("2026-11-27")


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
    for what, metrics, least in REPEATED:
        apart = {
            f"{lab_id[:5]} {case}": by_metric[name]["spread_over_all_medians"]
            for lab_id, spreads in _spreads(project).items()
            for case, by_metric in spreads.items()
            for name in metrics
            if name in by_metric and max(_medians(by_metric[name])) >= least
        }
        if len(apart) > 1:
            yield _row(f"{RUNS}, {what}: spread", apart)
    lab03 = project.root / "results" / "lab03-ipset"
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


def _spreads(project: Project) -> dict[str, dict[str, Any]]:
    """By lab, what `fwlab author repeatability` found on the last day on which it ran: by case and metric."""
    found: dict[str, dict[str, Any]] = {}
    for lab_id in lab_ids(project):
        documents = list((project.root / "results" / lab_id).glob("*-repeatability.json"))
        documents.sort(key=lambda path: (path.name[:DAY], len(path.name), path.name))  # DATE-2 comes after DATE
        for document in documents:
            if document.name[:DAY] == documents[-1].name[:DAY]:
                found.setdefault(lab_id, {}).update(json.loads(document.read_bytes())["spreads"])
    return found


def _medians(spread: dict[str, Any]) -> list[float]:
    """The medians of all runs, on an idle host and on a busy one."""
    listed = (found for kind in ("idle", "busy") for name, found in spread[kind].items() if name.startswith("medians"))
    return [median for medians in listed for median in medians]


def _row(what: str, apart: dict[str, float]) -> str:
    median, ninth = stats.quantiles(apart.values(), n=10, method="inclusive")[4::4]
    worst = max(apart, key=lambda case: apart[case])
    cells = [what, str(len(apart)), *(f"{share * 100:.2f} %" for share in (median, ninth))]
    return f"| {' | '.join(cells)} | {apart[worst] * 100:.2f} % ({worst}) |"
