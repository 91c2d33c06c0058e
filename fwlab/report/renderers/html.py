# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as one self-contained HTML page: no other files, no script, no external fonts."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from fwlab.judge.clocks import clock_of
from fwlab.measure.core_models import core_profile
from fwlab.metrics.call_stacks import FunctionShare, shares
from fwlab.metrics.load_time import METRIC as LOAD_TIME
from fwlab.metrics.registry import METRICS
from fwlab.model.metric import MAIN_METRIC
from fwlab.model.results import CpuSettings, Measured, Run
from fwlab.report import formatting
from fwlab.report.check_plot import check_plot, check_svg
from fwlab.report.curves import panels, position, published_positions
from fwlab.report.flame import flame
from fwlab.report.model import ReportModel
from fwlab.report.renderers import Renderer
from fwlab.report.report_rows import Row, fidelity

#: Functions with a smaller share of a packet's cost are in the graph only, not in the table.
MIN_SHOWN = 0.005
EXERCISE = Path(__file__).with_name("exercise.html.j2")
TEMPLATE = Path(__file__).with_name("page.html.j2")
STYLE = Path(__file__).with_name("page.css")


def page(model: ReportModel) -> str:
    """The whole HTML document."""
    lab, run = model.lab, model.run
    return template(TEMPLATE).render(
        style=style(),
        lab=lab,
        run=run,
        cases=model.cases,
        exercises=[(row, _drawn(row, model)) for row in model.exercises],
        outcome=model.outcome,
        runs=model.runs,
        baselines=model.baselines,
        baseline=formatting.either(base.case for base in model.baselines),
        drawings=_drawings(model),
        listed=model.listed,
        survivals=model.survival,
        load_tables=model.load_tables,
        crossovers=[(c.title, position(c), published_positions(c)) for c in model.crossovers],
        profiles=[_profile(row, run) for row in model.rows if row.measured.stacks],
        clock=clock_of(run.testbed),
        notes=model.notes,
        conditions=[_conditions(one) for one in model.runs],
        raw=[_raw(measured) for one in model.runs for measured in [*one.cases, *one.exercises]],
        METRICS=METRICS,
        MAIN=MAIN_METRIC,
        LOAD_TIME=LOAD_TIME,
        w=formatting,
        fidelity=fidelity,
    )


def _drawings(model: ReportModel) -> list[tuple[Markup, str]]:
    """The curves as <svg> elements, each with its caption."""
    drawn = [METRICS[name] for name, lines in model.curves.items() if panels(lines)]
    if not drawn:
        return []  # without importing matplotlib, which takes seconds on a slow host
    from fwlab.report.plot import plots

    return [(trusted(svg), metric.display.caption) for metric in drawn for svg in plots(model, metric)]


RENDERER = Renderer("html", "report.html", page)


def of_exercise(row: Row, model: ReportModel) -> str:
    """The part of the page that is about one exercise."""
    module = template(EXERCISE).module
    return str(module.of_exercise(row, _drawn(row, model), formatting))  # type: ignore[attr-defined]


@cache
def template(path: Path) -> Template:
    """A compiled page. Kept, because a grading writes its report again and again."""
    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(path.read_text(encoding="utf-8"))


@cache
def style() -> Markup:
    """The style sheet of our pages."""
    return trusted(STYLE.read_text(encoding="utf-8"))


def trusted(svg: str) -> Markup:
    """Our own drawings, whose texts are escaped as they are made."""
    return Markup(svg)  # noqa: S704


def _drawn(row: Row, model: ReportModel) -> Markup | None:
    """The picture of an exercise: prediction, measurement and what is accepted; None if nothing was measured."""
    baseline = next((base.capacity for base in model.baselines if base.case == row.baseline), None)
    plot = check_plot(row, baseline)
    if plot is None:
        return None
    figures = ", ".join(f"{bar.kind} {formatting.quantity(bar.value, plot.metric)}" for bar in plot.bars)
    accepted = f"; accepted: {plot.accepted_words}" if plot.accepted else ""
    return trusted(check_svg(plot, f"{plot.metric.display.label} of {row.id}: {figures}{accepted}"))


def _profile(row: Row, run: Run) -> dict[str, Any]:
    """The flame graph of a sampled case, and the table below it."""
    capacity = row.of(MAIN_METRIC)
    cost = capacity.cost if capacity else None
    stacks = row.measured.stacks
    found: list[FunctionShare] = [share for share in shares(stacks) if share.own >= MIN_SHOWN]
    return {
        "id": row.id,
        "title": row.title,
        "samples": sum(stacks.values()),
        "svg": trusted(flame(stacks, cost, clock_of(run.testbed).cost_unit)),
        "cost": cost,
        "functions": found,
        "core": _core_profile(row, run),
    }


def _core_profile(row: Row, run: Run) -> dict[str, Any] | None:
    """Where a packet waits on a modelled core; None if no core was modelled."""
    found = core_profile(row.measured, run.testbed)
    if found is None:
        return None
    return {
        "title": found.title,
        "cycles": found.cycles,
        "waits": found.waits,
        "svg": trusted(flame(found.stacks, found.waits, "cycles per packet", f"where {row.id} waits")),
        "functions": [one for one in found.functions if one.cycles >= MIN_SHOWN * found.cycles],
    }


def _conditions(run: Run) -> list[tuple[str, str]]:
    host, dut = run.host, run.dut
    image = ", ".join(f"{key} {value}" for key, value in dut.image.items())
    pairs = [
        ("testbed", formatting.describe_testbed(run.testbed)),
        ("note", run.testbed.note),
        ("reference CPU", clock_of(run.testbed).reference),
        ("host", f"{host.cpu}, {host.cores} cores, {host.memory_mib} MiB, {host.os}, kernel {host.kernel}"),
        ("host class", host.host_class or ""),
        *_cpu_settings(host.cpu_settings),
        ("host's load average", formatting.digits(host.load_average, 3)),
        ("QEMU, libvirt", f"{host.qemu}, {host.libvirt}"),
        ("DUT kernel", formatting.kernel(dut)),
        ("DUT command line", dut.cmdline),
        ("DUT clock source", dut.clocksource),
        ("DUT image", image),
        ("fwlab, commit", f"{run.fwlab}, {run.commit}"),
        ("seed", str(run.seed)),
        ("started", run.started),
    ]
    return [(name, value) for name, value in pairs if value]


def _cpu_settings(found: CpuSettings | None) -> list[tuple[str, str]]:
    if found is None:
        return []
    pinned = ", ".join(f"{node} on {cpus}" for node, cpus in found.pinning.items())
    mitigations = "; ".join(f"{name}: {says}" for name, says in found.mitigations.items())
    return [
        ("host's frequency governor", ", ".join(found.governors) or "none"),
        ("host's simultaneous multithreading", found.smt or "unknown"),
        ("host's CPUs of each node", pinned or "unknown"),
        ("host's mitigations", mitigations or "none"),
    ]


def _raw(measured: Measured) -> dict[str, str]:
    """The counts of one measurement, as one row of the last table."""
    counts = " ".join(f"{t.processed}/{formatting.digits(t.busy_s)}" for t in measured.trials)
    rate = measured.generator_pps
    busy = min((t.busy_share for t in measured.trials), default=None)
    return {
        "id": measured.id,
        "ruleset": f"{measured.ruleset} {measured.ruleset_hash[:12]}",
        "trials": counts,
        "busy": formatting.percent(busy),
        "loads": " ".join(formatting.digits(seconds) for seconds in measured.loads),
        "generator": formatting.quantity(rate, METRICS[MAIN_METRIC]) if rate else "",
        "throttle_level": str(measured.throttle_level),
        "took": f"{measured.wall_s:.0f} s",
    }
