# SPDX-License-Identifier: GPL-2.0-or-later
"""Text printed as it is."""

from rich.console import Console


def plain(console: Console, text: str) -> None:
    """Without markup, colours and folding: the text may quote files, and lines may be commands to copy."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
