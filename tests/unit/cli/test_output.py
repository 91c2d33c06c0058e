# SPDX-License-Identifier: GPL-2.0-or-later
"""What all commands print: a document for programs where they report something, and no colours for who wants none."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
import typer

from fwlab.cli.main import app
from tests import ROOT

#: Commands that change or write something and say so in a line, start something to look at, or print a file.
WITHOUT_JSON = {
    *("init", "web", "hold", "worker", "key", "start", "reset", "goto"),
    *("author bundle", "author classroom50", "author gradescope", "author new-lab", "author schemas", "author answers"),
    *("grades merge", "grades write", "grades total", "grades tasks", "grades moodle", "grades canvas"),
    *("traffic astf", "machines plan"),  # a profile in Python; JSON and nothing else
}
#: Sets a colour of the text or behind it.
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")


def leaves(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group) or hasattr(command, "commands"):
            yield from leaves(command, *path, name)
        else:
            yield " ".join([*path, name]), command


def test_every_command_that_reports_has_json() -> None:
    lacking = {
        name
        for name, command in leaves(typer.main.get_command(app))
        if not any("--json" in one.opts for one in command.params)
    }
    assert lacking == WITHOUT_JSON


def on_a_terminal(*words: str, **environment: str) -> str:
    """What `fwlab WORDS` prints on a terminal with colours."""
    ours, theirs = os.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    with subprocess.Popen(
        [sys.executable, "-m", "fwlab.cli.entry", *words],
        cwd=ROOT,
        env={**kept, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        said = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            said += more
            if not more:
                break
    os.close(ours)
    return said.decode()


@pytest.mark.parametrize("words", [("--help",), ("doctor",), ("run", "lab03-ipset", "--trials", "none")], ids=" ".join)
def test_no_colour_is_honoured(words: tuple[str, ...]) -> None:
    assert COLOUR.search(on_a_terminal(*words)), "there is none to leave out"
    plain = on_a_terminal(*words, NO_COLOR="1")
    assert plain
    assert not COLOUR.search(plain)
