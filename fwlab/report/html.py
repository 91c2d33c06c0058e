# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as one self-contained page: no other file, no script, no font from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from fwlab.metrics.call_stacks import FunctionShare, shares
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.report import formatting
from fwlab.report.crossovers import beside, crossings, where
from fwlab.report.flame import flame
from fwlab.report.report_rows import Row, baseline, case_rows, exercise_rows, fidelity, overall_outcome
from fwlab.report.survivals import survivals

#: Functions with less than this share of a packet are not in the table; they are in the graph.
LEAST_SHOWN = 0.005
TEMPLATE = Path(__file__).with_name("page.html.j2")


def page(lab: Lab, run: Run) -> str:
    """The whole HTML document."""
    from fwlab.report.plot import plots  # matplotlib takes a third of a second, and most commands draw nothing

    cases, exercises = case_rows(lab, run), exercise_rows(lab, run)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    drawings = [(svg, m.display.caption) for m in METRICS.values() if m.display.caption for svg in plots(lab, run, m)]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        lab=lab,
        run=run,
        cases=cases,
        exercises=exercises,
        outcome=overall_outcome([*cases, *exercises]),
        baseline=baseline(lab, run),
        drawings=[(Markup(svg), caption) for svg, caption in drawings],  # noqa: S704 - matplotlib's
        survivals=survivals(lab, run),
        crossings=[(crossed.title, where(crossed), beside(crossed)) for crossed in crossings(lab, run)],
        profiles=[_profile(row, run) for row in [*cases, *exercises] if row.measured.stacks],
        cost_unit=formatting.cost_unit(run.testbed),
        caution=formatting.caution(run.testbed),
        conditions=_conditions(run),
        raw=[_raw(measured) for measured in [*run.cases, *run.exercises]],
        METRICS=METRICS,
        w=formatting,
        fidelity=fidelity,
    )


def _profile(row: Row, run: Run) -> dict[str, Any]:
    """The flame graph of a sampled case and the table under it."""
    capacity = row.of("capacity")
    cost = capacity.cost if capacity else None
    stacks = row.measured.stacks
    found: list[FunctionShare] = [share for share in shares(stacks) if share.own >= LEAST_SHOWN]
    return {
        "id": row.id,
        "title": row.title,
        "samples": sum(stacks.values()),
        "svg": Markup(flame(stacks, cost, formatting.cost_unit(run.testbed))),  # noqa: S704 - flame escapes
        "cost": cost,
        "functions": found,
    }


def _conditions(run: Run) -> list[tuple[str, str]]:
    host, dut = run.host, run.dut
    image = ", ".join(f"{key} {value}" for key, value in dut.image.items())
    pairs = [
        ("testbed", formatting.describe_testbed(run.testbed)),
        ("note", run.testbed.note),
        ("reference CPU", "one instruction per nanosecond" if run.testbed.clock == "instructions" else ""),
        ("host", f"{host.cpu}, {host.cores} cores, {host.memory_mib} MiB, {host.os}, kernel {host.kernel}"),
        ("host class", host.host_class or ""),
        ("host's load average", formatting.digits(host.load_average, 3)),
        ("QEMU, libvirt", f"{host.qemu}, {host.libvirt}"),
        ("DUT kernel", dut.kernel),
        ("DUT command line", dut.cmdline),
        ("DUT clock source", dut.clocksource),
        ("DUT image", image),
        ("fwlab, commit", f"{run.fwlab}, {run.commit}"),
        ("seed", str(run.seed)),
        ("started", run.started),
    ]
    return [(name, value) for name, value in pairs if value]


def _raw(measured: Measured) -> dict[str, str]:
    """What happened in one measurement, as one line of the last table."""
    counts = " ".join(f"{t.processed}/{formatting.digits(t.busy_s)}" for t in measured.trials)
    rate = measured.generator_pps
    busy = min((t.busy_share for t in measured.trials), default=None)
    return {
        "id": measured.id,
        "ruleset": f"{measured.ruleset} {measured.ruleset_hash[:12]}",
        "trials": counts,
        "busy": formatting.percent(busy),
        "loads": " ".join(formatting.digits(seconds) for seconds in measured.loads),
        "generator": formatting.quantity(rate, METRICS["capacity"]) if rate else "",
        "slowed": str(measured.slowed),
        "took": f"{measured.wall_s:.0f} s",
    }
