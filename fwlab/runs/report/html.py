# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as one self-contained page: no other file, no script, no font from elsewhere."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from fwlab.logic import wording
from fwlab.logic.table import baseline, case_rows, exercise_rows, fidelity, overall_outcome
from fwlab.runs.report.plot import plot
from fwlab.words.lab import Lab
from fwlab.words.metric import Metric
from fwlab.words.results import Measured, Run

TEMPLATE = Path(__file__).with_name("page.html.j2")
#: Sentences under a plot: what its marks mean.
CAPTIONS = {
    Metric.CAPACITY: (
        "Capacity. Bars reach from the lowest to the highest trial; hollow marks are published ratios, "
        "multiplied by our baseline (dashed)."
    ),
    Metric.LOAD_TIME: "Load time. Bars reach from the fastest to the slowest loading.",
}


def page(lab: Lab, run: Run) -> str:
    """The whole HTML document."""
    cases, exercises = case_rows(lab, run), exercise_rows(lab, run)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    drawings = [(plot(lab, run, metric), caption) for metric, caption in CAPTIONS.items()]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        lab=lab,
        run=run,
        cases=cases,
        exercises=exercises,
        outcome=overall_outcome([*cases, *exercises]),
        baseline=baseline(lab, run),
        drawings=[(Markup(svg), caption) for svg, caption in drawings if svg],
        cost_unit=wording.cost_unit(run.testbed),
        caution=wording.caution(run.testbed),
        conditions=_conditions(run),
        raw=[_raw(measured) for measured in [*run.cases, *run.exercises]],
        Metric=Metric,
        w=wording,
        fidelity=fidelity,
    )


def _conditions(run: Run) -> list[tuple[str, str]]:
    host, dut = run.host, run.dut
    image = ", ".join(f"{key} {value}" for key, value in dut.image.items())
    pairs = [
        ("testbed", wording.describe_testbed(run.testbed)),
        ("note", run.testbed.note),
        ("reference CPU", "one instruction per nanosecond" if run.testbed.clock == "instructions" else ""),
        ("host", f"{host.cpu}, {host.cores} cores, {host.memory_mib} MiB, {host.os}, kernel {host.kernel}"),
        ("host class", host.host_class or ""),
        ("host's load average", wording.digits(host.load_average, 3)),
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
    counts = " ".join(f"{t.processed}/{wording.digits(t.busy_s)}" for t in measured.trials)
    rate = measured.generator_pps
    busy = min((t.busy_share for t in measured.trials), default=None)
    return {
        "id": measured.id,
        "ruleset": f"{measured.ruleset} {measured.ruleset_hash[:12]}",
        "trials": counts,
        "busy": wording.percent(busy),
        "loads": " ".join(wording.digits(seconds) for seconds in measured.loads),
        "generator": wording.quantity(rate, Metric.CAPACITY) if rate else "",
        "slowed": str(measured.slowed),
        "took": f"{measured.wall_s:.0f} s",
    }
