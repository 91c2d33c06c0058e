# SPDX-License-Identifier: GPL-2.0-or-later
"""The block of figures in a guide: between two markers, replaced whole, so that it can be renewed at will."""

from __future__ import annotations

from fwlab.logic.table import Row, case_rows
from fwlab.logic.wording import NOTHING, number, percent, ratio
from fwlab.words.errors import BadInput
from fwlab.words.lab import Lab
from fwlab.words.metric import Metric
from fwlab.words.results import Run

BEGIN = "<!-- figures:begin -->"
END = "<!-- figures:end -->"


def figures_table(lab: Lab, run: Run) -> str:
    """Markdown tables of the cases: capacities with their published ratios, then what was only loaded."""
    rows = case_rows(lab, run)
    measured = [row for row in rows if row.measured.metric is Metric.CAPACITY]
    loaded = [row for row in rows if row.measured.metric is Metric.LOAD_TIME]
    tables = []
    if measured:
        loads = any(row.of(Metric.LOAD_TIME) for row in measured)
        head = ["case", "kpps", f"ratio to `{lab.baseline}`", "published ratio", "source", "spread"]
        align = ["---", "---:", "---:", "---:", "---", "---:"]
        if loads:
            head, align = [*head, "load, s"], [*align, "---:"]
        tables.append(_table(head, align, [_capacity_cells(row, loads) for row in measured]))
    if loaded:
        body = [[_escaped(row.title), _number(row, Metric.LOAD_TIME)] for row in loaded]
        tables.append(_table(["case", "load, s"], ["---", "---:"], body))
    return "\n\n".join([*tables, _conditions(run)])


def replace_block(text: str, block: str) -> str:
    """`text` with what lies between the markers replaced. Raises BadInput unless each is there once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise BadInput(
            f"the page needs {BEGIN} and then {END}, each once",
            "put both on lines of their own where the table belongs",
        )
    before, rest = text.split(BEGIN)
    _old, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{block.strip()}\n\n{END}{after}"


def _capacity_cells(row: Row, loads: bool) -> list[str]:
    found = row.of(Metric.CAPACITY)
    published = [p for metric in row.metrics for p in metric.published]
    cells = [
        _escaped(row.title),
        _number(row, Metric.CAPACITY),
        ratio(found.ratio) if found else NOTHING,
        ", ".join(ratio(p.ratio) for p in published),
        ", ".join(p.source for p in published),
        percent(found.figure.spread) if found and found.figure else NOTHING,
    ]
    return [*cells, _number(row, Metric.LOAD_TIME) if row.of(Metric.LOAD_TIME) else ""] if loads else cells


def _number(row: Row, metric: Metric) -> str:
    found = row.of(metric)
    if found is None or found.figure is None:
        return NOTHING
    return number(found.figure.median, metric) + (" (in doubt)" if row.problems else "")


def _table(head: list[str], align: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, align, *body])


def _conditions(run: Run) -> str:
    """One line that says what the figures hold for."""
    clock = ", capacities on the reference CPU" if run.testbed.clock == "instructions" else ""
    trials = {len(case.trials) for case in run.cases if case.trials}
    count = f"; medians of {max(trials)} trials" if trials else ""
    where = f"Testbed {run.testbed.name}, guest kernel {run.dut.kernel}"
    return f"{where}{clock}{count}. Measured {run.started[:10]}."


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
