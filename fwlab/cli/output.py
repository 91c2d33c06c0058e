# SPDX-License-Identifier: GPL-2.0-or-later
"""How commands print."""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import typer
from rich.console import Console


def plain(console: Console, text: str) -> None:
    """Without markup, colours and folding: the text may quote files, and lines may be commands to copy."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """One document on standard output, as `--json` promises."""
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")


@contextlib.contextmanager
def instead_of_text(document: Callable[[], Any], *, as_json: bool) -> Iterator[None]:
    """Print this document in place of what is printed inside, if JSON is asked for; before an exit with a verdict, too.

    An error that the user is to act on has no document.
    """
    if not as_json:
        yield
        return
    with contextlib.redirect_stdout(io.StringIO()):
        leaving: typer.Exit | None = None
        try:
            yield
        except typer.Exit as error:
            leaving = error
    print_json(document())
    if leaving is not None:
        raise leaving
