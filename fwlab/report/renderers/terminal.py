# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as tables in the terminal, at most 100 columns wide."""

import io
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fwlab.judge.clocks import clock_of
from fwlab.measure.core_models import CoreTable, core_tables
from fwlab.metrics.load_time import METRIC as LOAD_TIME
from fwlab.model.metric import MAIN_METRIC
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome, Verdict
from fwlab.report import formatting
from fwlab.report.curves import Crossover, position, published_positions
from fwlab.report.model import ReportModel
from fwlab.report.renderers import Renderer
from fwlab.report.report_rows import MetricRow, Prediction, Row, fidelity
from fwlab.report.tables import LoadTable, SurvivalTable

WIDEST = 100
#: Narrower terminals omit columns that follow from others: the cost of a packet, the difference.
NARROW = 96
STYLES = {Outcome.PASS: "green", Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "yellow"}


def plain_text(model: ReportModel) -> str:
    """The same tables without colours."""
    text = io.StringIO()
    show(model, Console(file=text, width=WIDEST, color_system=None))
    return text.getvalue()


RENDERER = Renderer("terminal", None, plain_text)


def show(model: ReportModel, console: Console) -> None:
    """Print cases with the published figures, exercises with the predictions, and why something did not pass."""
    width = min(console.width, WIDEST)
    for part in _parts(model, width):
        console.print(part, width=width)


def _parts(model: ReportModel, width: int) -> list[RenderableType]:
    lab, run, cases = model.lab, model.run, model.cases
    baselines = formatting.either(base.case for base in model.baselines)
    parts: list[RenderableType] = [
        Text(f"{run.lab}: {lab.title}", style="bold"),
        Text(formatting.describe_testbed(run.testbed), style="dim"),
        *(Text(f"DUT kernel {formatting.kernel(one.dut)}, {one.started}", style="dim") for one in model.runs),
    ]
    if model.notes:
        parts.append(Text(" ".join(model.notes), style="yellow"))
    measured = [row for row in cases if MAIN_METRIC in _asked(row)]
    loaded = [row for row in cases if _asked(row)[0] == LOAD_TIME.name]
    if measured:
        parts += ["", _capacities(model, measured, width)]
    if loaded:
        parts += ["", _loads(loaded, run)]
    if model.listed:
        parts += ["", _listed(model.listed, run)]
    modelled = core_tables(run, [row.measured for row in cases])
    parts += [part for table in modelled for part in ("", _core(table))]
    parts += [part for table in model.survival for part in ("", _survival(baselines, table))]
    parts += [part for table in model.load_tables for part in ("", _loads_in_turn(table))]
    if model.crossovers:
        parts += ["", _crossovers(model.crossovers)]
    parts += [line for row in cases for line in _remarks(row)]
    for row in model.exercises:
        parts += ["", _exercise(row)]
    return parts


def _asked(row: Row) -> list[str]:
    return row.measured.metrics


def _capacities(model: ReportModel, rows: list[Row], width: int) -> Table:
    run = model.run
    published = any(row.published for row in rows)
    loads = any(row.of(LOAD_TIME.name) for row in rows)
    wide = width >= NARROW
    heads = ["kpps", "ratio"]
    if published:
        heads += ["published", "off by"][: 2 if wide else 1]
    if wide:
        heads.append(clock_of(run.testbed).cost_heading)
    if loads:
        heads.append("load, s")
    table = _table("Capacity", *heads, clock_of(run.testbed).scatter_heading, last=["verdict"], gap=2 if wide else 1)
    for row in rows:
        found, load = row.of(MAIN_METRIC), row.of(LOAD_TIME.name)
        cells = [row.id, _median(found), formatting.ratio(found.ratio if found else None)]
        if published:
            cells += _published(row, found)[: 2 if wide else 1]
        if wide:
            cells.append(formatting.digits(found.cost) if found and found.cost else formatting.NOTHING)
        if loads:
            cells.append(_median(load) if LOAD_TIME.name in _asked(row) else "")
        cells.append(_scatter(found) or formatting.NOTHING)
        table.add_row(*cells, _verdict(row))
    bases = [base.case + ("" if base.capacity else ", not measured in this run") for base in model.baselines]
    table.caption = f"ratio to {formatting.either(bases)}; {clock_of(run.testbed).scatter_meaning}"
    return table


def _median(found: MetricRow | None) -> str:
    return formatting.number(found.figure.median, found.metric) if found and found.figure else formatting.NOTHING


def _published(row: Row, found: MetricRow | None) -> list[str]:
    shown = [f"{formatting.ratio(p.ratio)} {p.source}" for p in row.published]
    off = [formatting.percent(fidelity(p, found.ratio if found else None), signed=True) for p in row.published]
    return ["\n".join(shown), "\n".join(off)]


def _loads(rows: list[Row], run: Run) -> Table:
    table = _table("Load time", "load, s", clock_of(run.testbed).scatter_heading, last=["verdict"])
    for row in rows:
        found = row.of(LOAD_TIME.name)
        table.add_row(row.id, _median(found), _scatter(found), _verdict(row))
    return table


def _listed(figures: Iterable[tuple[Row, MetricRow]], run: Run) -> Table:
    table = _table(
        "Other figures", "median", clock_of(run.testbed).scatter_heading, names=("case", "metric"), last=["verdict"]
    )
    for row, found in figures:
        value = found.figure
        median = formatting.quantity(value.median, found.metric) if value else formatting.NOTHING
        table.add_row(row.id, found.label, median, _scatter(found), _verdict(row))
    return table


def _core(found: CoreTable) -> Table:
    table = _table("Modelled core", *found.heads, gap=1)
    for case, cells in found.rows:
        table.add_row(case, *cells)
    table.caption = found.caption
    return table


def _scatter(found: MetricRow | None) -> str:
    return formatting.scatter(found.figure, found.scatter, found.metric) if found is not None else ""


def _survival(baseline: str, found: SurvivalTable) -> Table:
    table = _table("Survival", *found.values, names=(found.parameter,))
    for title, cells in found.rows:
        table.add_row(title, *cells)
    table.caption = found.caption(baseline)
    return table


def _loads_in_turn(found: LoadTable) -> Table:
    table = _table(f"{found.name}, {found.case}", *found.heads, names=())
    for cells in found.rows:
        table.add_row(*cells)
    return table


def _crossovers(found: Iterable[Crossover]) -> Table:
    table = _table("Crossovers", names=("what becomes faster than what", "measured (interval)", "published"))
    for crossover in found:
        table.add_row(crossover.title, position(crossover), published_positions(crossover))
    return table


def _table(
    title: str, *numbers: str, names: Iterable[str] = ("case",), last: Iterable[str] = (), gap: int = 2
) -> Table:
    """An empty table with the columns `names`, `numbers` (aligned right) and `last`."""
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), title=title, title_justify="left")
    table.title_style, table.header_style = "bold", "dim"
    table.caption_justify = "left"
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    for name in last:
        table.add_column(name)
    return table


def _verdict(row: Row) -> Text:
    return Text(row.outcome.value, style=STYLES[row.outcome]) if row.outcome else Text("")


def _remarks(row: Row) -> list[Text]:
    """Why a case did not pass: its problems, or else the text of each check that it failed."""
    if row.outcome in (None, Outcome.PASS):
        return []
    lines = list(row.problems)
    if not lines:
        lines += [_failure(v) for v in row.verdicts if v.outcome is Outcome.FAIL]
        lines += [v.text for v in row.verdicts if v.outcome is Outcome.INCONCLUSIVE]
    return [Text.assemble((f"{row.id}: ", STYLES[row.outcome]), line) for line in dict.fromkeys(lines)]


def _failure(verdict: Verdict) -> str:
    expected = f"{formatting.measured_value(verdict)}, expected {formatting.expected_range(verdict)}."
    return f"{expected} {verdict.text} {verdict.why}".strip()


def _exercise(row: Row) -> Group:
    head = Text.assemble((f"{row.title} ", "bold"), (f"({row.id}, {row.measured.ruleset}) ", "dim"))
    lines: list[RenderableType] = [Text.assemble(head, _verdict(row))]
    if row.prediction is not None:
        lines.append(Padding(_prediction(row.prediction), (0, 0, 0, 2)))
    remarks = [Padding(Text(remark, style="yellow"), (0, 0, 0, 2)) for remark in row.measured.remarks]
    if row.measured.refused is not None:  # every check fails for the same reason
        lines += [Padding(Text(problem), (0, 0, 0, 2)) for problem in row.problems]
        return Group(*lines, *remarks)
    checks = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    checks.add_column(width=len(Outcome.INCONCLUSIVE.value))
    checks.add_column(max_width=23)
    checks.add_column(ratio=1)
    for verdict in row.verdicts:
        outcome = Text(verdict.outcome.value, style=STYLES[verdict.outcome])
        checks.add_row(outcome, formatting.check_label(verdict), _explanation(verdict))
    lines.append(Padding(checks, (0, 0, 0, 2)))
    unexplained = [problem for problem in row.problems if not any(problem in v.text for v in row.verdicts)]
    lines += [Padding(Text(problem, style="yellow"), (0, 0, 0, 2)) for problem in unexplained]
    return Group(*lines, *remarks)


def _explanation(verdict: Verdict) -> Text:
    """The measured value and its range, then the lab's text; the reason only for a failure."""
    text = Text()
    if verdict.value is not None:
        text.append(f"{formatting.measured_value(verdict)}, expected {formatting.expected_range(verdict)}. ")
    text.append(verdict.text)
    if verdict.outcome is Outcome.FAIL and verdict.why:
        text.append(f" {verdict.why}", style="dim")
    return text


def _prediction(prediction: Prediction) -> Text:
    text = Text(f"You predicted {formatting.quantity(prediction.value, prediction.metric)}")
    if prediction.measured is not None:
        text.append(f", measured {formatting.quantity(prediction.measured, prediction.metric)}")
    if prediction.ratio is not None:
        text.append(f": {formatting.ratio(prediction.ratio)} of the prediction")
    return text
