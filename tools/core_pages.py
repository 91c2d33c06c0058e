# SPDX-License-Identifier: GPL-2.0-or-later
"""What pages show of modelled cores: the reference cores, tables of runs that were modelled on them, and a picture."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from fwlab_coresim.cores import ReferenceCore, reference_cores
from fwlab_coresim.figures import HEADS, CoreFigures, core_figures
from fwlab_coresim.functions import function_costs
from fwlab_coresim.metric import counted
from matplotlib.figure import Figure as Drawing

from fwlab.checkout.project import find_project
from fwlab.checkout.raw_results import read_document
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured, Run
from fwlab.report.formatting import digits
from fwlab.report.plot import COLOURS
from tools.core_ratios import modelled_cases
from tools.markdown import block, table

#: How the names of cores.yml are shown.
SHOWN = {
    "width": "instructions per cycle, at most",
    "l1i": "L1I",
    "l1d": "L1D",
    "l2": "L2",
    "llc": "last level (LLC)",
    "memory_latency": "memory, cycles",
    "itlb": "TLB for code",
    "dtlb": "TLB for data",
    "second_tlb": "second TLB",
    "directions": "conditional branches",
    "targets": "indirect branches",
    "returns": "return stack, entries",
    "mispredicted": "mispredicted branch, cycles",
    "retpolines": "retpolines",
    "locked": "locked instruction, cycles",
}
#: What an instruction may wait for.
_WAITS = {"load_wait": "loads", "fetch_wait": "fetches", "tlb_wait": "translations", "branch_wait": "branches"}
#: Measurements of one case.
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
#: Columns of a function.
_COSTS = ("instructions", "cycles", "memory", "branches", "locks")
WIDTH_IN, BAR_IN, AROUND_IN = 8.0, 0.36, 1.3
#: What a bar of the picture consists of, and its colour.
PARTS = (
    ("instructions, at full width", COLOURS[6]),
    ("waits for caches, memory and translations", COLOURS[0]),
    ("waits for mispredicted branches", COLOURS[1]),
    ("locked instructions", COLOURS[3]),
)


def parameters() -> str:
    """The parameters of every core with their sources."""
    parts = []
    for name, core in reference_cores().items():
        rows = ((SHOWN[key], _value(core, key), source) for key, source in core.sources.items())
        parts += [f"`{name}`: {core.title}.", table(("parameter", "value", "source"), rows)]
    return block("\n\n".join(parts))


def cases(lab: str) -> str:
    """The newest figures of every case of this lab that was modelled, core by core, in the lab's order."""
    project = find_project()
    order = load_lab(project, lab).whole.cases
    tables = (
        table((f"on `{core}`", *_right(HEADS)), ((case, *found[case].cells()) for case in order if case in found))
        for core, found in modelled_cases(project, lab).items()
    )
    return block("\n\n".join(tables))


def functions(lab: str, file: str, shown: int = 12) -> str:
    """The functions of a profiled case that take most cycles on the modelled core, per packet."""
    [run] = _runs(lab, (file,))
    [case] = run.cases
    costs = function_costs(case, run.testbed)
    heads = ("instructions", "cycles", "waits for memory", "for branches", "for locks")
    rows = [(f"`{one.name}`", *(f"{getattr(one, field):.0f}" for field in _COSTS)) for one in costs[:shown]]
    sums = (sum(getattr(one, field) for one in costs) for field in _COSTS)
    rows.append((f"all {len(costs)} functions", *(f"{value:,.0f}" for value in sums)))
    return block(table(("function", *_right(heads)), rows))


def cycles_of(lab: str, core: str, rows: Sequence[tuple[str, str]]) -> Drawing:
    """A bar for each (case, words), from the lab's newest modelled figures of this core. Raises KeyError."""
    cases = modelled_cases(find_project(), lab)[core]
    found = [(words, cases[case]) for case, words in rows]
    drawing = Drawing(figsize=(WIDTH_IN, AROUND_IN + BAR_IN * len(rows)), layout="constrained")
    axes = drawing.subplots()
    most = max(one.cycles for _, one in found)
    for place, (_, one) in enumerate(found):
        left = 0.0
        for (_, colour), part in zip(PARTS, parts(one), strict=True):
            axes.barh(place, part, left=left, height=0.62, color=colour, alpha=0.8)
            left += part
        words = f"{one.cycles:,.0f}, of {digits(one.instructions)} instructions"
        axes.text(one.cycles + most * 0.01, place, words, va="center", fontsize=9)
    axes.set_yticks(range(len(found)), [words for words, _ in found])
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.42)
    axes.set_xlabel(f"cycles per packet, {core}")
    for name, colour in PARTS:
        axes.barh(0, 0, color=colour, alpha=0.8, label=name)
    drawing.legend(loc="outside lower center", ncols=2, fontsize=9)
    return drawing


def parts(one: CoreFigures) -> tuple[float, float, float, float]:
    """The cycles of each part of a bar, in the order of PARTS."""
    waits = [one.cycles * share for share in (one.memory, one.branches, one.locks)]
    return one.cycles - sum(waits), waits[0], waits[1], waits[2]


def waits_moved(lab: str, file: str, case: str, shown: int = 8) -> str:
    """A case that one run profiled several times: the functions whose waits for memory differ most, per packet."""
    [run] = _runs(lab, (file,))
    measured = [one for one in run.cases if one.id == case]
    waits: dict[str, list[float]] = {}
    for number, one in enumerate(measured):
        for cost in function_costs(one, run.testbed):
            waits.setdefault(cost.name, [0.0] * len(measured))[number] = cost.memory
    most = sorted(waits.items(), key=lambda item: min(item[1]) - max(item[1]))[:shown]
    cycles = [figures.cycles for one in measured if (figures := core_figures(one, run)) is not None]
    rows = [(f"`{name}`", *(f"{value:.1f}" for value in values)) for name, values in most]
    rows.append(("cycles of the packet", *(f"{value:,.1f}" for value in cycles)))
    return block(table(("function", *_right(_ORDINALS[: len(measured)])), rows))


def repeats(lab: str, plain: str, *files: str) -> str:
    """A run without the model and runs with it: how far apart their figures are, and how long the cases took."""
    without, *others = _runs(lab, (plain, *files))
    rows = []
    for case in without.cases:
        pairs = [(run, found) for run in others if (found := run.case(case.id)) is not None]
        base = _by_clock(case, without)
        clocks = [_by_clock(found, run) for run, found in pairs]
        cycles = [counted.cycles for run, one in pairs if (counted := core_figures(one, run)) is not None]
        moved = max((abs(one / base - 1) for one in clocks), default=0.0)
        times = max(found.wall_s / case.wall_s for _, found in pairs)
        shown = ", ".join(f"{one:,.0f}" for one in cycles)
        instructions = ", ".join(f"{one:,.1f}" for one in clocks)
        apart = max(cycles) / min(cycles) - 1
        cells = (f"{base:,.1f}", instructions, f"{moved:.3%}", shown, f"{apart:.2%}", f"{times:.1f} times")
        rows.append((case.title, *cells))
    heads = ("instructions without", "with", "moved", "cycles", "apart", "time")
    return block(table(("case", *_right(heads)), rows))


def moved(lab: str, *files: str) -> str:
    """Cases that several runs have: their cycles, and how far apart the runs are in each kind of waiting."""
    runs = _runs(lab, files)
    rows = []
    by_core: dict[str, list[Run]] = {}
    for run in runs:
        by_core.setdefault(run.testbed.core.name if run.testbed.core else "", []).append(run)
    for name, same in by_core.items():
        for case in same[0].cases:
            found = [(one, run) for run in same if (one := run.case(case.id)) is not None and one.trials]
            if len(found) < 2:
                continue
            cycles = [figures.cycles for pair in found if (figures := core_figures(*pair)) is not None]
            cells = [f"`{name}`", ", ".join(f"{one:,.0f}" for one in cycles), f"{max(cycles) / min(cycles) - 1:.2%}"]
            for wait in _WAITS:
                values = [_waited(*pair, wait) for pair in found]
                cells.append(f"{max(values) - min(values):.1f}")
            rows.append((case.id, *cells))
    heads = ("cycles", "apart", *(f"{words}, apart" for words in _WAITS.values()))
    return block(table(("case", "core", *_right(heads)), rows))


def _waited(measured: Measured, run: Run, wait: str) -> float:
    """Cycles of one kind of waiting per packet: the median of the trials."""
    return median(float(getattr(found, wait)) / units for units, found in counted(measured, run.testbed))


def _by_clock(measured: Measured, run: Run) -> float:
    """Instructions per packet by the clock: the median of the trials."""
    return median(METRICS["instructions"].values(measured, run.testbed))


def pages(file: str) -> str:
    """How the DUT's kernel maps its address space, of a file in results/model."""
    regions = json.loads(read_document(find_project().root / "results" / "model" / file))["regions"]
    rows = ((name, f"{found['large']:,}", f"{found['small']:,}") for name, found in regions.items())
    return block(table(("addresses of the kernel", "pages of 2 MiB:", "of 4 KiB:"), rows))


def known(*files: str) -> str:
    """The programs with known answers, of files in results/model: what each load, turn or call takes."""
    folder = find_project().root / "results" / "model"
    cores: dict[str, Any] = {}
    for file in files:
        cores |= json.loads(read_document(folder / file))["cores"]
    rows = (
        (_titled(of_each_core[0]["program"]), *map(_each, of_each_core))
        for of_each_core in zip(*(core["programs"] for core in cores.values()), strict=True)
    )
    return block(table(("program", *(f"`{name}`:" for name in cores)), rows))


def _each(program: dict[str, Any]) -> str:
    """What is known of a program: cycles that each load waits, or the share that is mispredicted."""
    counts, times = program["counted"], program["times"]
    if program["program"].startswith("chase"):
        return f"{counts.get('load_wait', 0) / times:.1f} cycles"
    missed = "direction_misses" if program["program"].startswith("branch") else "target_misses"
    return f"{counts.get(missed, 0) / times:.1%}"


def _titled(program: str) -> str:
    kind, _, number = program.partition(" ")
    if kind == "chase":
        kib = int(number) >> 10
        return f"pointers through {f'{kib} KiB' if kib < 1024 else f'{kib >> 10} MiB'}"
    if kind == "branch":
        return "a branch by chance" if int(number) else "a branch that alternates"
    return f"an indirect call of {number} in turns"


def _runs(lab: str, files: tuple[str, ...]) -> list[Run]:
    folder: Path = find_project().root / "results" / lab
    return [load_run(folder / file, lab) for file in files]


def _value(core: ReferenceCore, name: str) -> str:
    value = getattr(core, name)
    match name:
        case "l1i":
            return f"{value.kib} KiB, {value.ways} ways"
        case "l1d" | "l2" | "llc":
            return f"{value.kib:,} KiB, {value.ways} ways, {value.latency} cycles"
        case "itlb" | "dtlb":
            small = f"{value.small} of 4 KiB in {value.small_ways} ways"
            return f"{small}, {value.large} of 2 MiB in {value.large_ways} ways"
        case "second_tlb":
            which = "two: code, data" if value.split else "one"
            large = "4 KiB and 2 MiB" if value.large else "4 KiB only"
            return f"{which}; {value.pages} of {large}, {value.ways} ways, {value.latency} cycles more"
        case "directions":
            return f"{value.counters:,} counters, {value.outcomes} outcomes"
        case "targets":
            return f"{value.entries:,} entries, {value.history} targets before"
    return str(value)


def _right(heads: Iterable[str]) -> Iterator[str]:
    """Of columns that are aligned to the right."""
    return (f"{head}:" for head in heads)
