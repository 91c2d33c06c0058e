# SPDX-License-Identifier: GPL-2.0-or-later
"""How well figures repeat: within one boot, across fresh boots, on an idle host and on a busy one.

For each figure that a range judges it also says how likely chance alone is to fail it: from the mean of all runs and
twice their standard deviation, as if they were normally distributed. Of fewer than ten runs, a share has at least the
standard deviation of the binomial distribution of its packets.
"""

import contextlib
import datetime
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fwlab.checkout.project import Project, display_path, find_project, lab_ids
from fwlab.checkout.raw_results import name_of, raw_result, raw_results, read_document, write_document
from fwlab.cli.options import AlsoMetrics, LabName, Verbose
from fwlab.judge.statistics import Figure, figure
from fwlab.judge.verdicts import judge_cases
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab, on_dut
from fwlab.measure.plan import case_spec, chosen_cases, with_able_engine, with_metrics
from fwlab.measure.saved_runs import load_run, published_files
from fwlab.measure.session import open_session
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Case
from fwlab.model.errors import BadInput
from fwlab.model.events import EventSink, StepStarted
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric
from fwlab.model.results import Run
from fwlab.report.progress import listener
from fwlab.testbed.choices import topology_of
from fwlab.testbed.selection import TestbedRequest
from tools.markdown import block, table

#: Boots, and runs on each. On a busy host a run takes some three times as long.
BOOTS, RUNS = 3, {"idle": 3, "busy": 1}

#: So many runs show how far a figure scatters; the standard deviation of a few is easily half of the true one.
MANY, CAUTION = 10, 2.0

#: How the documents of `repeatability` were measured.
HOW = "twelve runs over three boots, idle and busy host"
#: Of what they have: words, metrics, and the least figure. Of a share below that, chance decides how far it is apart.
REPEATED = (
    ("capacity", ("capacity",), 0.0),
    ("throughput (NDR)", ("throughput",), 0.0),
    ("connections per second", ("connections",), 0.0),
    ("shares of at least 1 %", ("survival", "passed", "delivered"), 0.01),
)

#: Names of results begin with the day.
DAY = len("2026-11-27")

_SPIN = "import os\np = os.getppid()\nwhile os.getppid() == p:\n    for _ in range(10**6): pass\n"


def repeatability_command(
    lab: LabName,
    cases: Annotated[
        list[str] | None, typer.Argument(metavar="[CASE]...", help="Cases or sweeps (default: quick).")
    ] = None,
    also: AlsoMetrics = None,
    verbose: Verbose = False,
) -> None:
    """Measure how well the figures of a lab repeat over fresh boots, on an idle and on a busy host."""
    project = find_project()
    found = load_lab(project, lab)
    topology = topology_of(project, found)
    found = on_dut(found, topology, found)
    context = RunContext(project, topology, found, TestbedRequest("virtual"))
    chosen = [with_metrics(context, case, also or []) for case in benchmark_cases(found, cases or [])]
    with listener(Console(stderr=True), verbose=verbose) as emit:
        runs = measure(context, chosen, emit)
    result = document(found, runs, chosen)
    path = keep_document(project, found, result)
    typer.echo(json.dumps(result["spreads"], indent=1))
    typer.echo(f"written: {display_path(project, path)}")


def benchmark_cases(lab: Lab, names: list[str]) -> list[Case]:
    """The named cases; without names, those that lab.yml marks `quick`. Raises BadInput if there are none."""
    cases = chosen_cases(lab, names, quick=True)
    if not cases:
        raise BadInput(
            f"{lab.id} marks no case as quick",
            f"name cases: .venv/bin/python -m tools repeatability {lab.id} CASE...",
        )
    return cases


@contextlib.contextmanager
def busy_host() -> Iterator[None]:
    """Run one more spinning process than the host has cores."""
    spinners = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def measure(context: RunContext, cases: list[Case], emit: EventSink) -> dict[str, list[Run]]:
    """{"idle": [runs of every boot], "busy": [...]}, each with the cases' own trials."""
    runs: dict[str, list[Run]] = {"idle": [], "busy": []}
    specs = [case_spec(context, case, None) for case in cases]
    context = with_able_engine(context, [spec.traffic for spec in specs])
    for boot in range(BOOTS):
        emit(StepStarted(f"boot {boot + 1} of {BOOTS}"))
        with open_session(context, emit) as session:
            for kind in [kind for kind, count in RUNS.items() for _ in range(count)]:
                session.run.cases.clear()
                with busy_host() if kind == "busy" else contextlib.nullcontext():
                    session.measure_cases(specs)
                runs[kind].append(session.run.model_copy(deep=True))
    return runs


def document(lab: Lab, runs: dict[str, list[Run]], cases: list[Case]) -> dict[str, Any]:
    """The runs, and their spreads as ratios, by case and metric: within a run (the largest), across runs, and across
    all of both hosts."""
    return {
        "how": f"python -m tools repeatability: {BOOTS} boots, on each {RUNS['idle']} runs on an idle host and "
        f"{RUNS['busy']} on a busy one",
        "spreads": {
            case.id: {name: _spreads(lab, runs, case, METRICS[name]) for name in [case.metric, *case.also]}
            for case in cases
        },
        "runs": {kind: [run.model_dump(mode="json") for run in some] for kind, some in runs.items()},
    }


def _spreads(lab: Lab, runs: dict[str, list[Run]], case: Case, metric: Metric) -> dict[str, Any]:
    by_host: dict[str, list[Figure]] = {}
    for kind, some in runs.items():
        found = [figure(measured, metric, run.testbed) for run in some if (measured := run.case(case.id))]
        by_host[kind] = [one for one in found if one is not None]
    spreads: dict[str, Any] = {
        kind: {
            f"medians_{metric.unit}": [round(f.median, 1 if metric.unit == "pps" else 6) for f in figures],
            "largest_spread_in_a_run": max((f.spread for f in figures if f.several), default=None),
            "spread_over_runs": _spread([f.median for f in figures]),
        }
        for kind, figures in by_host.items()
    }
    everything = [f for figures in by_host.values() for f in figures]
    spreads["spread_over_all_medians"] = _spread([f.median for f in everything])
    outcomes = [
        verdict.outcome.value
        for some in runs.values()
        for run in some
        for verdict in judge_cases(lab, run, METRICS)
        if (verdict.subject, verdict.metric) == (case.id, metric.name)
    ]
    if outcomes:
        spreads["verdicts"] = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    between = [
        (verdict.low, verdict.high)
        for verdict in judge_cases(lab, runs["idle"][0], METRICS)
        if (verdict.subject, verdict.metric, verdict.relative_to) == (case.id, metric.name, None)
    ]
    if between and everything:
        spreads["range"], spreads["chance_of_failure"] = list(between[0]), chance_of_failure(everything, between[0])
    return spreads


def chance_of_failure(figures: list[Figure], between: tuple[float | None, float | None]) -> float:
    """Probability that a further run's figure lies outside its range, by chance alone."""
    medians = [figure.median for figure in figures]
    deviation = CAUTION * statistics.stdev(medians) if len(medians) > 1 else 0.0
    for one in figures if len(figures) < MANY else []:
        if one.counts is not None and one.counts[1]:
            share = one.counts[0] / one.counts[1]
            deviation = max(deviation, math.sqrt(share * (1 - share) / one.counts[1]))
    if not deviation:
        inside = all(
            (low is None or low <= m) and (high is None or m <= high) for m in medians for low, high in [between]
        )
        return 0.0 if inside else 1.0
    spread = statistics.NormalDist(statistics.mean(medians), deviation)
    low, high = between
    below = 0.0 if low is None else spread.cdf(low)
    above = 0.0 if high is None else 1 - spread.cdf(high)
    return round(below + above, 9)


def _spread(medians: list[float]) -> float | None:
    return Figure(medians).spread if medians else None


def keep_document(project: Project, lab: Lab, result: dict[str, Any]) -> Path:
    """Write results/LAB/DATE-repeatability.json.gz, or DATE-2-repeatability.json.gz and so on; its path."""
    today = datetime.date.today().isoformat()
    names = itertools.chain([today], (f"{today}-{number}" for number in itertools.count(2)))
    paths = (raw_result(project, f"{lab.id}/{name}-repeatability") for name in names)
    return write_document(next(path for path in paths if not path.exists()), json.dumps(result, indent=1) + "\n")


def repeatability_table() -> str:
    """A table for guides/method.md: of two runs, how far the medians of each case lie apart."""
    return block(table(("compared", "figures:", "median:", "90th percentile:", "largest"), _rows(find_project())))


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


def _rows(project: Project) -> Iterator[list[str]]:
    for what, metrics, least in REPEATED:
        apart = {
            f"{lab_id[:5]} {case}": by_metric[name]["spread_over_all_medians"]
            for lab_id, spreads in _newest_spreads(project).items()
            for case, by_metric in spreads.items()
            for name in metrics
            if name in by_metric and max(_medians(by_metric[name])) >= least
        }
        if len(apart) > 1:
            yield _row(f"{HOW}, {what}: spread", apart)
    lab03 = "lab03-ipset"
    names = "2026-11-20-full", "2026-11-21-other-host"
    hosts = [load_run(raw_result(project, f"{lab03}/{name}"), lab03) for name in names]
    cpus = " and ".join(run.host.cpu.split("(")[0].split()[0] for run in hosts)
    yield _row(f"lab03 on two hosts ({cpus}), capacity", differences(hosts[0], hosts[1], METRICS["capacity"]))
    yield _row("the same, load time", differences(hosts[0], hosts[1], METRICS["load_time"]))
    boots = _against_published(project, "labs", "capacity")
    yield _row("all labs in another boot (`published.json.gz` and `*-labs.json.gz`), capacity", boots)
    yield _row("another CPU model (`*-nehalem.json.gz`), capacity", _against_published(project, "nehalem", "capacity"))
    survived = _against_published(project, "nehalem", "survival")
    yield _row("the same, share that survives", survived)


def _against_published(project: Project, kind: str, metric: str) -> dict[str, float]:
    """The differences of each lab's published run and its newest one of this kind, where there is one."""
    found: dict[str, float] = {}
    for lab_id in lab_ids(project):
        for path in published_files(project, load_lab(project, lab_id)):
            again = raw_results(project, f"{lab_id}/*{name_of(path).removeprefix('published')}-{kind}")
            if again:
                found |= differences(load_run(path, lab_id), load_run(again[-1], lab_id), METRICS[metric])
    return found


def _newest_spreads(project: Project) -> dict[str, dict[str, Any]]:
    """By lab, what `repeatability` found on the last day on which it ran: by case and metric."""
    found: dict[str, dict[str, Any]] = {}
    for lab_id in lab_ids(project):
        documents = raw_results(project, f"{lab_id}/*-repeatability")
        documents.sort(key=lambda path: (path.name[:DAY], len(path.name), path.name))  # DATE-2 comes after DATE
        for document in documents:
            if document.name[:DAY] == documents[-1].name[:DAY]:
                found.setdefault(lab_id, {}).update(json.loads(read_document(document))["spreads"])
    return found


def _medians(spread: dict[str, Any]) -> list[float]:
    """The medians of all runs, on an idle host and on a busy one."""
    listed = (found for kind in ("idle", "busy") for name, found in spread[kind].items() if name.startswith("medians"))
    return [median for medians in listed for median in medians]


def _row(what: str, apart: dict[str, float]) -> list[str]:
    median, ninth = statistics.quantiles(apart.values(), n=10, method="inclusive")[4::4]
    worst = max(apart, key=lambda case: apart[case])
    shares = (f"{share * 100:.2f} %" for share in (median, ninth))
    return [what, str(len(apart)), *shares, f"{apart[worst] * 100:.2f} % ({worst})"]
