# SPDX-License-Identifier: GPL-2.0-or-later
"""What the source documents printed and what we measure: every published ratio and crossover, its error, and why.

A case of lab.yml says what a document printed for it (`published`). A lab's published.yml says why our figure differs,
and adds ratios to another case than the lab's baseline.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fwlab.checkout.project import Project, display_path, find_project, lab_ids
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import published_runs
from fwlab.model.case import Case
from fwlab.model.declared import Identifier, Strict, first_fault
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.model import build_model
from tools.figures import medians
from tools.markdown import block, table

FILE = "published.yml"
NOT_KNOWN = "not known"
#: Published figures have two or three digits: a smaller error than this is none.
AGREES = 0.03
#: Columns of a comparison.
_COMPARED = ("what", "published:", "ours:", "order", "size:", "lab")


class Comparison(Strict):
    """One row of published.yml.

    source     the document, S1 to S5
    case       our case, or `crossover`, a crossover of the lab
    to         the case that the ratio is to (default: the lab's baseline)
    what       what is compared (default: the case's title)
    ratio      what the document printed (default: by the figures that lab.yml gives for both cases)
    at_most    the document printed a limit of the ratio, or of two cases only which is ahead (at most 1)
    figure     a name for what the document printed, if several rows compare the same figure with cases of ours
    why        why ours differs, by an experiment of ours if there is one
    """

    source: str
    case: Identifier | None = None
    crossover: Identifier | None = None
    to: Identifier | None = None
    what: str | None = None
    ratio: float | None = None
    at_most: bool = False
    figure: str | None = None
    why: str = NOT_KNOWN


_ROWS = TypeAdapter(list[Comparison])


@dataclass(frozen=True)
class Row:
    """A published ratio or crossover and ours; `ours` is None if it was not measured yet.

    pair    the case and the one that its ratio is to, or the slower and the faster sweep of a crossover
    figure  the printed figure: several rows may compare the same
    """

    lab: str
    source: str
    what: str
    published: float
    ours: float | None
    unit: str
    cases: str
    why: str
    at_most: bool = False
    pair: tuple[str, str] = ("", "")
    figure: str = ""

    @property
    def error(self) -> float | None:
        """By how much ours differs, as a share of what was published; None if it was not measured yet."""
        if self.ours is None:
            return None
        return 0.0 if self.within_limit else self.ours / self.published - 1

    @property
    def within_limit(self) -> bool:
        """Whether the document printed a limit only, and ours is within it: by how much is not comparable."""
        return self.at_most and self.ours is not None and self.ours <= self.published

    @property
    def same_order(self) -> bool:
        """Whether the same case is ahead as in the document, or neither is in both; a crossover is one in both."""
        if self.ours is None or self.unit:
            return self.ours is not None
        if self.at_most and self.published >= 1:
            return self.ours <= self.published * (1 + AGREES)
        return _ahead(self.ours) == _ahead(self.published)

    @property
    def link(self) -> str:
        """To the lab's page, from one in guides/."""
        return f"[{self.lab.partition('-')[0]}](../labs/{self.lab}/README.md)"

    def size(self) -> str:
        """By how much ours differs, in words for a table."""
        if self.error is None:
            return ""
        return "not printed" if self.within_limit else f"{round(self.error * 100):+d} %"

    def cells(self) -> list[str]:
        """What was published, ours, whether the order is the same, and by how much the size differs."""
        unit = f" {self.unit}" if self.unit else ""
        published = f"{'at most ' if self.at_most else ''}{self.published:.3g}{unit}"
        if self.ours is None:
            return [published, "not measured yet", "", ""]
        return [published, f"{self.ours:.3g}{unit}", "agrees" if self.same_order else "differs", self.size()]


def _ahead(ratio: float) -> int:
    """1 if the first of two cases is ahead, -1 if the second is, 0 if neither is."""
    return (ratio > 1 + AGREES) - (ratio < 1 - AGREES)


@cache  # a page asks for each source
def all_rows(project: Project) -> list[Row]:
    """The rows of all labs, by source and then by lab."""
    rows = [row for lab_id in lab_ids(project) for row in rows_of(project, load_lab(project, lab_id))]
    return sorted(rows, key=lambda row: row.source)  # stable: the labs keep their order


def rows_of(project: Project, lab: Lab) -> list[Row]:
    """The rows of one lab: those of published.yml, then what only lab.yml declares. Raises BadInput."""
    runs = published_runs(project, lab)
    declared = list(_declared(project, lab))
    known = {(one.source, one.case or one.crossover) for one in declared}
    return [_row(project, lab, runs, one) for one in (*declared, *_undeclared(lab, known))]


def _declared(project: Project, lab: Lab) -> list[Comparison]:
    path = lab.folder / FILE
    if not path.exists():
        return []
    name = display_path(project, path)
    try:
        return _ROWS.validate_python(read_yaml_file(path, name))
    except ValidationError as error:
        raise BadInput(f"{name}: {first_fault(error)}", f"fix {name}") from error


def _undeclared(lab: Lab, known: set[tuple[str, str | None]]) -> Iterator[Comparison]:
    """Ratios and crossovers that lab.yml declares, and published.yml does not explain."""
    for case in lab.cases.values():
        for one in case.published:
            if one.ratio not in (None, 1.0) and case.id != lab.baseline and (one.source, case.id) not in known:
                yield Comparison(source=one.source, case=case.id)
    for crossover in lab.crossovers:
        for one in crossover.published:
            if one.value is not None and (one.source, crossover.id) not in known:
                yield Comparison(source=one.source, crossover=crossover.id)


def _row(project: Project, lab: Lab, runs: list[Run], one: Comparison) -> Row:
    try:
        return _crossover(lab, runs, one) if one.crossover else _ratio(lab, runs, one)
    except LookupError as error:
        name = display_path(project, lab.folder / FILE)
        what = error.args[0] if error.args else one.case or one.crossover
        raise BadInput(f"{name}: {lab.id} has no {what}, or no figure of {one.source} for it", f"fix {name}") from error


def _ratio(lab: Lab, runs: list[Run], one: Comparison) -> Row:
    case, base = lab.cases[one.case or ""], lab.cases[one.to or _base(lab, one)]
    median = medians(lab.id, lab, runs)
    measured = all(any(run.case(one.id) for run in runs) for one in (case, base))
    return Row(
        lab=lab.id,
        source=one.source,
        what=one.what or case.title,
        published=one.ratio if one.ratio is not None else _printed(case, base, one),
        ours=median(case.id) / median(base.id) if measured else None,
        unit="",
        cases=f"`{case.id}` / `{base.id}`",
        why=one.why,
        at_most=one.at_most,
        pair=(case.id, base.id),
        figure=one.figure or f"{lab.id} {case.id} {base.id} {one.ratio}",
    )


def _base(lab: Lab, one: Comparison) -> str:
    """The case that a document's ratios are to: the one of the same system that lab.yml gives the ratio 1."""
    system = lab.cases[one.case or ""].system
    same = (case for case in lab.cases.values() if case.system in (None, system))
    return next((c.id for c in same if any(p.source == one.source and p.ratio == 1 for p in c.published)), lab.baseline)


def _printed(case: Case, base: Case, one: Comparison) -> float:
    """The ratio of the two figures that the document printed, or else the ratio that lab.yml gives."""
    values = [
        next((p.value for p in both.published if p.source == one.source and p.value), None) for both in (case, base)
    ]
    if values[0] is not None and values[1] is not None:
        return values[0] / values[1]
    found = next((p.ratio for p in case.published if p.source == one.source and p.ratio), None)
    if found is None or one.to is not None:
        raise LookupError(f"ratio of {case.id} to {base.id}")
    return found


def _crossover(lab: Lab, runs: list[Run], one: Comparison) -> Row:
    declared = next((c for c in lab.crossovers if c.id == one.crossover), None)
    if declared is None:
        raise LookupError(f"crossover {one.crossover}")
    printed = next((p for p in declared.published if p.source == one.source and p.value is not None), None)
    if printed is None or printed.value is None:
        raise LookupError(f"value of the crossover {one.crossover}")
    model = build_model(lab, runs[0], runs[1:]) if runs else None
    found = next((c.value for c in model.crossovers if c.id == one.crossover), None) if model else None
    return Row(
        lab=lab.id,
        source=one.source,
        what=one.what or declared.title,
        published=printed.value,
        ours=found,
        unit=printed.unit,
        cases=f"`{declared.slower}`, `{declared.faster}`",
        why=one.why,
        at_most=one.at_most,
        pair=(declared.slower, declared.faster),
        figure=one.figure or f"{lab.id} {declared.id}",
    )


def compared(page: str) -> str:
    """The ratios of the lab whose README.md `page` is, without reasons: its text has them."""
    project = find_project()
    lab = load_lab(project, Path(page).resolve().parent.name)
    rows = []
    for row in rows_of(project, lab):
        if not row.unit:
            published, ours, *agreement = row.cells()
            rows.append((row.source, row.what, published, ours, row.cases, *agreement))
    return _table(("source", "ratio", "published:", "ours:", "our cases", "order", "size:"), rows)


def of_figure(source: str, figure: str) -> str:
    """The rows that compare one printed figure of a source, without reasons."""
    rows = (row for row in all_rows(find_project()) if (row.source, row.figure) == (source, figure))
    return _table(_COMPARED, ((row.what, *row.cells(), row.link) for row in rows))


def of_source(source: str) -> str:
    """What all labs have of one source, with the reasons."""
    rows = (row for row in all_rows(find_project()) if row.source == source)
    return _table((*_COMPARED, "why"), ((row.what, *row.cells(), row.link, row.why) for row in rows))


def summary() -> str:
    """How many of the printed figures agree, in words. One agrees if every row that compares it does."""
    rows = [row for row in all_rows(find_project()) if row.ours is not None]
    figures: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        figures.setdefault((row.source, row.figure), []).append(row)
    sized = [group for group in figures.values() if not any(row.within_limit for row in group)]
    order = sum(all(row.same_order for row in group) for group in figures.values())
    close = sum(all(abs(row.error or 0.0) <= AGREES for row in group) for group in sized)
    return (
        f"\n{len(rows)} rows compare {len(figures)} figures that the sources printed. {order} agree in order. "
        f"{len(sized)} can be compared in size, and {close} of these agree within {AGREES * 100:.0f} %.\n"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return block(table(heads, rows).replace("  |", " |"))
