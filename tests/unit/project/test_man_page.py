# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual page: fresh, and roff that groff has nothing against."""

import subprocess

import typer

from fwlab.cli.main import app
from tests import ROOT
from tests.fakes.programs import program
from tools.man_page import FILE, man_page


def test_it_is_fresh() -> None:
    assert (ROOT / FILE).read_text() == man_page(), "stale: make readme"


def test_it_has_every_command() -> None:
    text = man_page()
    names = typer.main.get_command(app).commands
    assert len(names) > 20
    assert not [name for name in names if f"\n.SS fwlab {name}".replace("-", "\\-") not in text]


def test_groff_finds_nothing() -> None:
    done = subprocess.run(
        [program("groff", packages="packages-test.txt"), "-man", "-ww", "-z", ROOT / FILE],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
