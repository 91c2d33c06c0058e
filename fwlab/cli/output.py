# SPDX-License-Identifier: GPL-2.0-or-later
"""How commands print."""

import json
import sys
from typing import Any

from rich.console import Console


def plain(console: Console, text: str) -> None:
    """Without markup, colours and folding: the text may quote files, and lines may be commands to copy."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """One document on standard output, as `--json` promises."""
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
