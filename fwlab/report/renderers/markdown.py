# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as Markdown tables, for the pages of the labs."""

from collections.abc import Iterable

from fwlab.judge.clocks import clock_of
from fwlab.metrics.load_time import METRIC as LOAD_TIME
from fwlab.metrics.registry import METRICS
from fwlab.model.metric import Metric
from fwlab.model.results import Run
from fwlab.model.systems import on_system
from fwlab.report.curves import position, published_positions
from fwlab.report.formatting import NOTHING, either, kernel, number, ratio, scatter
from fwlab.report.model import ReportModel
from fwlab.report.renderers import Renderer
from fwlab.report.report_rows import Row, baseline_case

#: A sweep with more steps than the first is shown by as many steps as the second.
LONG_SWEEP, STEPS_SHOWN = 12, 6


def figures_table(model: ReportModel) -> str:
    """Markdown tables of the cases: first figures with a ratio to a baseline, then those that have none.

    Long sweeps are shortened to a few steps from the first to the last.
    """
    lab = model.lab
    rows, left_out = _thinned(model.cases)
    with_ratios = [metric for metric in METRICS.values() if metric.display.table == "ratio"]
    parts = [on_system(lab, run.dut.system) for run in model.runs]
    bases = {metric.name: either(f"`{baseline_case(part, metric)}`" for part in parts) for metric in with_ratios}
    tables = [_rates(rows, metric, bases[metric.name], model.run) for metric in with_ratios]
    tables += [
        _counts([row for row in rows if _shown(row) == metrics], metrics)
        for metrics in dict.fromkeys(_shown(row) for row in rows)
        if metrics[0].display.table == "plain"
    ]
    for table in model.survival:
        body = [[_escaped(title), *cells] for title, cells in table.rows]
        caption = table.caption(either(f"`{base.case}`" for base in model.baselines))
        tables.append(f"{caption[0].upper()}{caption[1:]}:")
        tables.append(_table([table.parameter, *table.values], ["---", *("---:" for _ in table.values)], body))
    crossed = [[_escaped(c.title), position(c), published_positions(c)] for c in model.crossovers]
    if crossed:
        tables.append(_table(["crossover", "measured (interval)", "published"], ["---", "---", "---"], crossed))
    conditions = [_conditions(run, left_out if run is model.runs[0] else 0) for run in model.runs]
    return "\n\n".join([*filter(None, tables), *conditions, *model.notes])


RENDERER = Renderer("markdown", None, lambda model: figures_table(model) + "\n")


def _thinned(rows: Iterable[Row]) -> tuple[list[Row], int]:
    """The rows without most steps of long sweeps, and how many were left out."""
    sweeps: dict[str, list[str]] = {}
    for row in rows:
        if row.sweep and row.measured.id.startswith(f"{row.sweep}-"):
            sweeps.setdefault(row.sweep, []).append(row.id)
    out = set()
    for ids in sweeps.values():
        if len(ids) > LONG_SWEEP:
            kept = {ids[round(n * (len(ids) - 1) / (STEPS_SHOWN - 1))] for n in range(STEPS_SHOWN)}
            out |= set(ids) - kept
    return [row for row in rows if row.id not in out], len(out)


def _shown(row: Row) -> tuple[Metric, ...]:
    """The metrics that a row has columns for, each once even if it was measured for several classes."""
    return tuple(dict.fromkeys(m.metric for m in row.metrics))


def _rates(rows: list[Row], metric: Metric, base: str, run: Run) -> str:
    """Packets or connections per second, with their ratio to the baseline and the published ratios."""
    rows = [row for row in rows if row.measured.metric == metric.name]
    if not rows:
        return ""
    unit = metric.display.unit
    head = ["case", unit, f"ratio to {base}", "published ratio", "source", clock_of(run.testbed).scatter_heading]
    align = ["---", "---:", "---:", "---:", "---", "---:"]
    if loads := any(row.of(LOAD_TIME.name) for row in rows):
        head, align = [*head, "load, s"], [*align, "---:"]
    return _table(head, align, [_rate_cells(row, metric, loads) for row in rows])


def _counts(rows: list[Row], metrics: tuple[Metric, ...]) -> str:
    """Figures without a baseline, one column per metric."""
    units = [m.display.heading for m in metrics]
    body = [[_escaped(row.title), *(_number(row, m) for m in metrics)] for row in rows]
    return _table(["case", *units], ["---", *("---:" for _ in metrics)], body)


def _rate_cells(row: Row, metric: Metric, loads: bool) -> list[str]:
    found = row.of(metric.name)
    cells = [
        _escaped(row.title),
        _number(row, metric),
        ratio(found.ratio) if found else NOTHING,
        ", ".join(ratio(p.ratio) for p in row.published),
        ", ".join(p.source for p in row.published),
        (scatter(found.figure, found.scatter, found.metric) if found else "") or NOTHING,
    ]
    return [*cells, _number(row, LOAD_TIME) if row.of(LOAD_TIME.name) else ""] if loads else cells


def _number(row: Row, metric: Metric) -> str:
    found = row.of(metric.name)
    if found is None or found.figure is None:
        return NOTHING
    return number(found.figure.median, metric) + (" (in doubt)" if row.problems else "")


def _table(head: list[str], align: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, align, *body])


def _conditions(run: Run, left_out: int) -> str:
    """The conditions that the figures hold for, on one line."""
    trials = {len(case.trials) for case in run.cases if case.trials}
    count = f"; medians of {max(trials)} trials" if trials else ""
    where = f"Testbed {run.testbed.name}, guest kernel {kernel(run.dut)}"
    rest = f" {left_out} more steps of the sweeps are in the raw results." if left_out else ""
    return f"{where}{clock_of(run.testbed).conditions}{count}. Measured {run.started[:10]}.{rest}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
