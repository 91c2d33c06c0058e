# SPDX-License-Identifier: GPL-2.0-or-later
"""Published figures next to those by instructions and by cycles of the reference cores, for all cases of all labs that
were modelled: results/LAB/*-model-*.json.gz."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from fwlab_coresim.figures import CoreFigures, all_core_figures

from fwlab.checkout.project import Project, find_project, lab_ids
from fwlab.checkout.raw_results import raw_results
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.model.lab import Lab
from tools.markdown import block
from tools.markdown import table as markdown_table
from tools.published_ratios import Row, rows_of

#: A figure that is nearer to the published one by less than this share of it is not called nearer.
NEARER = 0.01

#: What one packet, or one connection, costs in a case; None if it was not modelled.
Cost = Callable[[str], float | None]


@dataclass(frozen=True)
class ModelledRow:
    """A published figure, ours by instructions, and by cycles of each core; of cores that lack a case, None."""

    row: Row
    instructions: Row
    cycles: Mapping[str, Row | None]


def modelled_cases(project: Project, lab_id: str) -> dict[str, dict[str, CoreFigures]]:
    """By core, the newest figures of every case that was modelled."""
    found: dict[str, dict[str, CoreFigures]] = {}
    runs = (load_run(path, lab_id) for path in raw_results(project, f"{lab_id}/*-model-*"))
    for run in sorted(runs, key=lambda one: one.started):
        if run.testbed.core is not None:
            ours = found.setdefault(run.testbed.core.name, {})
            ours.update({one.case: one for one in all_core_figures(run.cases, run)})
    return dict(sorted(found.items()))


def modelled_rows(project: Project, lab: Lab) -> list[ModelledRow]:
    """The published figures of this lab whose cases were modelled."""
    by_core = modelled_cases(project, lab.id)
    rows = []
    for row in rows_of(project, lab):
        cycles = {name: _ours(row, _costs(cases, "cycles")) for name, cases in by_core.items()}
        counted = (_ours(row, _costs(cases, "instructions")) for cases in by_core.values())
        instructions = next((one for one in counted if one is not None), None)
        if instructions is not None:
            rows.append(ModelledRow(row, instructions, cycles))
    return rows


def _costs(cases: Mapping[str, CoreFigures], name: str) -> Cost:
    return lambda case: float(getattr(cases[case], name)) if case in cases else None


def _ours(row: Row, cost: Cost) -> Row | None:
    """The row with our figure by this cost; None if that is not known."""
    value = _crossover(row, cost) if row.unit else _ratio(row, cost)
    return None if value is None else replace(row, ours=value)


def _ratio(row: Row, cost: Cost) -> float | None:
    case, base = (cost(one) for one in row.pair)
    return base / case if case and base else None


def _crossover(row: Row, cost: Cost) -> float | None:
    """Where the first sweep becomes dearer than the second, between two of the points that were modelled."""
    slower, faster = row.pair
    points = [(n, a - b) for n in range(2001) if (a := cost(f"{slower}-{n}")) and (b := cost(f"{faster}-{n}"))]
    for (n, before), (m, after) in pairwise(points):
        if before < 0 <= after:
            return n + (m - n) * -before / (after - before)
    return None


def all_modelled_rows() -> list[ModelledRow]:
    """Those of all labs, by source."""
    project = find_project()
    rows = [one for lab_id in lab_ids(project) for one in modelled_rows(project, load_lab(project, lab_id))]
    return sorted(rows, key=lambda one: one.row.source)


def table() -> str:
    """Published, by instructions, by cycles of each core, each with its error."""
    rows = all_modelled_rows()
    cores = sorted({name for one in rows for name in one.cycles})
    heads = ("source", "what", "our cases", "published:", "instructions:", *(f"cycles, `{name}`:" for name in cores))
    cells = []
    for one in rows:
        figures = [_cell(one.instructions), *(_cell(one.cycles.get(name)) for name in cores)]
        words = (one.row.source, one.row.what, f"{one.row.cases} ({one.row.link})", one.row.cells()[0])
        cells.append((*words, *figures))
    return block(markdown_table(heads, cells))


def losses(lab: str, base: str, *cases: str) -> str:
    """Ratios of these cases to one of the same lab, by instructions and by cycles of each core."""
    by_core = {name: found for name, found in modelled_cases(find_project(), lab).items() if base in found}
    rows = []
    for case in cases:
        both = [(found[base], found[case]) if case in found else None for found in by_core.values()]
        counted = next(one.instructions / two.instructions for one, two in filter(None, both))
        cells = [f"{pair[0].cycles / pair[1].cycles:.3g}" if pair else "" for pair in both]
        rows.append((f"`{case}`", f"{counted:.3g}", *cells))
    heads = ("case", "by instructions:", *(f"by cycles of `{name}`:" for name in by_core))
    return block(markdown_table(heads, rows))


def nearer() -> str:
    """How many rows come nearer to what was published, by cycles of each core, in words."""
    rows = all_modelled_rows()
    sentences = []
    for name in sorted({name for one in rows for name in one.cycles}):
        moved = [_moved(one.instructions, ours) for one in rows if (ours := one.cycles.get(name)) is not None]
        nearer, farther = sum(by < -NEARER for by in moved), sum(by > NEARER for by in moved)
        sentences.append(
            f"By cycles of `{name}`, {nearer} of {len(moved)} figures come nearer to what was published, {farther} "
            f"move away, and {len(moved) - nearer - farther} stay where they are within {NEARER * 100:.0f} %."
        )
    return block("\n".join(sentences))


def _moved(instructions: Row, cycles: Row) -> float:
    return abs(cycles.error or 0.0) - abs(instructions.error or 0.0)


def _cell(row: Row | None) -> str:
    if row is None or row.ours is None:
        return ""
    return f"{row.ours:.3g} ({row.size()})"
