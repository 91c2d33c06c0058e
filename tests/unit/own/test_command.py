# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab compare`, on this machine's own kernel: its exit codes, its text and its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fwlab.cli.main import app
from fwlab.model.errors import BadInput

from .kernel import lacks

needs_kernel = pytest.mark.skipif(bool(lacks()), reason=lacks())
RULES = "table inet f {{\nchain c {{\ntype filter hook forward priority 0; policy drop;\ntcp dport {} accept\n}}\n}}\n"


def files(folder: Path, old: str, new: str) -> list[str]:
    for name, text in (("old.nft", old), ("new.nft", new)):
        (folder / name).write_text(text)
    return [str(folder / "old.nft"), str(folder / "new.nft")]


def fwlab(*words: str):
    return CliRunner().invoke(app, list(words))


@needs_kernel
def test_the_same_rules_exit_with_0(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", *files(tmp_path, RULES.format(80), RULES.format("{ 80 }")))
    assert done.exit_code == 0, done.output
    assert "no difference was found" in done.stdout
    assert "1 of 1 rules reached" in done.stdout


@needs_kernel
def test_a_difference_exits_with_1_and_names_both_rules(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", "--json", *files(tmp_path, RULES.format("80-90"), RULES.format("80-91")))
    assert done.exit_code == 1, done.output
    [one] = json.loads(done.stdout)["differences"]
    assert one["steps"][0]["packet"]["dport"] == 91
    assert (one["old"]["fate"], one["new"]["fate"]) == ("dropped", "forwarded")
    assert one["new"]["decided_by"] == "tcp dport 80-91 accept"


@needs_kernel
def test_a_line_that_the_tool_refuses_is_quoted(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", *files(tmp_path, RULES.format("wat"), RULES.format(80)))
    assert isinstance(done.exception, BadInput)
    assert "OLD old.nft" in done.exception.message
    assert "tcp dport wat accept" in done.exception.message


@needs_kernel
def test_rules_without_a_chain_are_refused(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", *files(tmp_path, "table inet f {\n}\n", RULES.format(80)))
    assert isinstance(done.exception, BadInput)
    assert "no chain" in done.exception.message


def test_a_file_that_is_not_there_is_named_before_anything_starts(tmp_path: Path) -> None:
    done = fwlab("compare", str(tmp_path / "none"), str(tmp_path / "none"))
    assert isinstance(done.exception, BadInput)
    assert "none" in done.exception.message
