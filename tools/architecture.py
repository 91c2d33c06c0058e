# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture of guides/architecture.md: which package imports which, as the code says."""

import tomllib
from pathlib import Path

import grimp
from matplotlib.figure import Figure as Drawing

from fwlab.checkout.project import find_project
from fwlab.report.plot import COLOURS, INK

#: Width of the names at the left, and side of a cell (inches).
NAMES_IN, CELL_IN = 1.6, 0.33


def packages() -> Drawing:
    """A row and a column for each package of `fwlab`, the highest first; a square where the row imports the column.

    A square left of the diagonal would be an import from below, which import-linter forbids.
    """
    root = find_project().root
    names = layers(root)
    imports = imported()
    side = CELL_IN * len(names)
    drawing = Drawing(figsize=(NAMES_IN + side + 0.2, side + 1.1), layout="constrained")
    axes = drawing.subplots()
    for row, name in enumerate(names):
        axes.axhline(row, color=INK, linewidth=0.4, alpha=0.25, zorder=0)
        axes.axvline(row, color=INK, linewidth=0.4, alpha=0.25, zorder=0)
        axes.scatter(row, row, marker="s", s=95, color=INK, alpha=0.25)
        there = [column for column, other in enumerate(names) if other in imports[name]]
        axes.scatter(there, [row] * len(there), marker="s", s=95, color=COLOURS[0], alpha=0.85)
    axes.set_xticks(range(len(names)), names, rotation=55, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.set_ylim(len(names) - 0.3, -0.7)
    axes.set_aspect("equal")
    return drawing


def layers(root: Path) -> list[str]:
    """The packages of `fwlab` in import-linter's order, the highest first."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(list(one["layers"]) for one in contracts if one["type"] == "layers")


def imported() -> dict[str, set[str]]:
    """By package of `fwlab`, the packages that any module of it imports, in functions too."""
    graph = grimp.build_graph("fwlab", cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules - {"fwlab"}:
        packages = (other.split(".")[1] for other in graph.find_modules_directly_imported_by(module) if "." in other)
        found.setdefault(module.split(".")[1], set()).update(packages)
    return {name: others - {name} for name, others in found.items()}
