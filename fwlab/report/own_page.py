# SPDX-License-Identifier: GPL-2.0-or-later
"""The prices of a ruleset as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fwlab.report.flame import flame
from fwlab.report.renderers.html import style, template, trusted

TEMPLATE = Path(__file__).with_name("own_page.html.j2")


def page(
    name: str,
    document: Mapping[str, Any],
    where: str,
    changes: Sequence[str] | None,
    of: Mapping[str, Any] | None,
    stacks: Mapping[str, int],
) -> str:
    """The whole HTML document.

    document  prices for programs
    where     which classes were divided, in words
    changes   those that were tried, in words
    of        the class whose packet was sampled, and its `stacks`
    """
    parts = [one["instructions"] for one in document["where"]["stretches"]]
    classes = sorted(document["classes"], key=lambda one: (-(one["share"] or 0), -one["instructions"]))
    cost = of["instructions"] if of else None
    return template(TEMPLATE).render(
        style=style(),
        name=name,
        kernel=document["kernel"],
        found=document,
        classes=classes,
        where=where,
        whole=sum(parts) or 1,
        most=max(parts, default=1),
        changes=changes,
        of=of,
        samples=sum(stacks.values()),
        flame=trusted(flame(stacks, cost, "instructions per packet")) if stacks else "",
        number=lambda value: f"{value:,.0f}",
    )
