# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture of guides/architecture.md: which package imports which, as the code says."""

import ast
import tomllib
from collections.abc import Iterable
from pathlib import Path

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
    imports = {name: imported(root / "fwlab" / name) for name in names}
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


def imported(package: Path) -> set[str]:
    """The other packages of `fwlab` that any module of this one imports, in functions too."""
    found: set[str] = set()
    for module in package.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            found.update(_packages_of(node))
    return found - {package.name}


def _packages_of(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.ImportFrom) and not node.level:
        module = node.module or ""
        names = [f"{module}.{alias.name}" for alias in node.names] if module == "fwlab" else [module]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        return
    for name in names:
        first, _, rest = name.partition(".")
        if first == "fwlab" and rest:
            yield rest.partition(".")[0]
