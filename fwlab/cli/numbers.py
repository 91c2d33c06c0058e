# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers as people type them: 280000, 280k, 280,000, 2.8e5, 19%."""

import re

import typer

_GROUPED = re.compile(r"[+-]?\d{1,3}([,_ ]\d{3})+(\.\d+)?")
_FACTORS = {"k": 1e3, "M": 1e6, "%": 0.01}


def number(text: str) -> float:
    """The number. Raises typer.BadParameter, with examples, if it is none."""
    bare = text.strip()
    factor = _FACTORS.get(bare[-1:], 1.0)
    bare = bare[:-1].rstrip() if factor != 1.0 else bare
    if _GROUPED.fullmatch(bare):
        bare = re.sub(r"[,_ ]", "", bare)
    try:
        return float(bare) * factor
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number; write 280000, 280k, 280,000, 0.19 or 19%") from None
