# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables and blocks in Markdown."""

from collections.abc import Iterable, Sequence


def block(text: str) -> str:
    """With an empty line on either side, which Markdown needs between a comment and a table."""
    return f"\n{text}\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. The cells below a head that ends with a colon, as in `|---:|`, are aligned to the right."""
    rule = "|".join("---:" if head.endswith(":") else "---" for head in heads)
    lines = [_line([head.removesuffix(":") for head in heads]), f"|{rule}|"]
    return "\n".join([*lines, *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
