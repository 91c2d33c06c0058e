# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers inside a page's sentences. Each is followed by a comment with the expression that it is computed from:

    The second rule costs 349<!-- = (cost("ports-iptables-1500") - cost("ports-iptables-0")) / 100 --> instructions.

The expression is Python, like cog's blocks, and knows the functions below. The number keeps its decimal places.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path

from fwlab.model.errors import BadInput
from fwlab.report.model import build_model
from tools.figures import medians, published_runs

_FIGURE = re.compile(r"(?P<number>\d+(?:\.(?P<decimals>\d+))?)(?P<comment><!-- = (?P<expression>[^\n]+?) -->)")


def with_numbers(text: str, page: Path) -> str:
    """The page with these numbers computed anew. Raises BadInput, naming the expression, if one cannot be computed."""
    if not _FIGURE.search(text):
        return text
    names = _functions(str(page))

    def computed(found: re.Match[str]) -> str:
        try:
            value = eval(found["expression"], {"__builtins__": {}}, names)  # noqa: S307 - as cog does with this page
        except (ArithmeticError, LookupError, NameError, StopIteration, SyntaxError, TypeError) as error:
            message = f"{page.name}: {found['expression']}: {error}"
            raise BadInput(message, f"correct the expression in {page.name}") from error
        return f"{value:.{len(found['decimals'] or '')}f}{found['comment']}"

    return _FIGURE.sub(computed, text)


def _functions(page: str) -> dict[str, Callable[..., float]]:
    """Of the newest full run of the page's lab; cases, sweeps and crossovers by id.

    median           in the unit of the case's metric: pps, connections per second, ...
    kpps             thousand packets per second
    cost             instructions per packet or connection
    load             seconds in which a case's ruleset is loaded
    ratio            a case's median divided by another's
    frmol            thousand packets per second that are forwarded at the maximum offered load
    forwarded        per cent of the packets that a case's trials processed
    lowest, highest  cost of a sweep's cheapest and most expensive case
    crossover        the parameter at which the faster sweep overtakes the slower one
    """
    lab, runs = published_runs(page)
    median = medians(page, lab, runs)
    cases = {sweep.id: [case.id for case in sweep.cases()] for sweep in lab.sweeps}

    def cost(case: str) -> float:
        return 1e9 / median(case)

    def forwarded(case: str) -> float:
        trials = next(measured.trials for run in runs for measured in run.cases if measured.id == case)
        return 100.0 * sum(trial.forwarded for trial in trials) / sum(trial.processed for trial in trials)

    def crossover(crossover_id: str) -> float:
        return (
            next(found.value for found in build_model(lab, runs[0], runs[1:]).crossovers if found.id == crossover_id)
            or math.nan
        )

    return {
        "median": median,
        "kpps": lambda case: median(case) / 1e3,
        "cost": cost,
        "load": medians(page, lab, runs, "load_time"),
        "ratio": lambda case, base: median(case) / median(base),
        "frmol": lambda case: medians(page, lab, runs, "frmol")(case) / 1e3,
        "forwarded": forwarded,
        "lowest": lambda sweep: min(map(cost, cases[sweep])),
        "highest": lambda sweep: max(map(cost, cases[sweep])),
        "crossover": crossover,
    }
