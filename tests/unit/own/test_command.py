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
def test_events_end_with_what_was_found(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", "--events", *files(tmp_path, RULES.format(80), RULES.format(80)))
    *steps, last = map(json.loads, done.stdout.splitlines())
    assert {one["event"] for one in steps} == {"StepStarted"}
    assert last["event"] == "ResultMade"
    assert "no difference was found" in last["text"]


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


AT_A_DEVICE = """table netdev f {
chain c {
type filter hook ingress device "br-lan" priority 0; policy accept;
ip saddr 192.0.2.0/%s drop
}
}
table inet g {
chain c {
type filter hook forward priority 0; policy accept;
iif "wan" drop
}
}
"""


@needs_kernel
def test_interfaces_that_nft_asks_for_are_there_when_it_loads(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", *files(tmp_path, AT_A_DEVICE % 24, AT_A_DEVICE % 24))
    assert done.exit_code == 0, done.output


@needs_kernel
def test_a_rule_at_a_device_decides_too(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", "--json", *files(tmp_path, AT_A_DEVICE % 24, AT_A_DEVICE % 25))
    assert done.exit_code == 1, done.output
    decided = {one["old"]["decided_by"] for one in json.loads(done.stdout)["differences"]}
    assert decided == {"ip saddr 192.0.2.0/24 drop"}


@needs_kernel
def test_a_match_that_is_not_installed_is_named_with_its_line(tmp_path: Path) -> None:
    lines = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m nosuchmatch -j DROP\nCOMMIT\n"
    done = fwlab("compare", "--here", *files(tmp_path, lines, lines))
    assert isinstance(done.exception, BadInput)
    assert "old.nft:3: -A FORWARD -m nosuchmatch" in done.exception.message
    assert "module" in done.exception.hint


@needs_kernel
def test_rules_without_a_chain_are_refused(tmp_path: Path) -> None:
    done = fwlab("compare", "--here", *files(tmp_path, "table inet f {\n}\n", RULES.format(80)))
    assert isinstance(done.exception, BadInput)
    assert "no chain" in done.exception.message


@pytest.mark.parametrize("command", ["compare none none", "price none"])
def test_a_file_that_is_not_there_is_named_before_anything_starts(command: str) -> None:
    done = fwlab(*command.split())
    assert isinstance(done.exception, BadInput)
    assert "none" in done.exception.message
