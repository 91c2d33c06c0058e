# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset kind that is defined outside fwlab is validated, ordered, packed for the DUT, loaded and undone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract import PLUGINS, environment

SESSION = PLUGINS.with_name("plugin_programs") / "ruleset_session.py"
#: A tool that keeps its list in a file next to itself and refuses addresses outside the lab.
TOOL = """#!/bin/sh
list="$0.list"
case "$1" in
    load) cat > "$0.new"; ! grep -v '^198\\.1[89]\\.' "$0.new" >&2 || exit 3; cat "$0.new" >> "$list" ;;
    list) cat "$list" 2>/dev/null || true ;;
    clear) rm -f "$list" ;;
esac
"""


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bin") / "greylist"
    path.write_text(TOOL)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def session(tool: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    work = tmp_path_factory.mktemp("session")
    submission = work / "submission"
    submission.mkdir()
    (submission / "a.tc").write_text("qdisc add dev eth0 clsact\n")
    (submission / "b.greylist").write_text("198.18.1.1\n198.18.1.2\n")
    (submission / "c.nft").write_text("add table ip t\n")
    argv = [sys.executable, SESSION, submission, work, tool]
    done = subprocess.run(argv, env=environment(PLUGINS), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_has_its_place_in_the_loading_order(session: dict[str, Any]) -> None:
    order = session["order"]
    assert order.index("nft") < order.index("greylist") < order.index("tc")
    assert session["files"] == [["c.nft", "nft"], ["b.greylist", "greylist"], ["a.tc", "tc"]]


def test_its_files_are_validated(session: dict[str, Any]) -> None:
    assert session["refused"][0] == "bad.greylist:2: $(reboot) is not an address"


def test_the_agent_loads_and_removes_it(session: dict[str, Any]) -> None:
    assert session["loaded"] == len(session["files"])
    assert (session["entries"], session["entries after"], session["left"]) == (2, 0, [])


def test_the_grader_sees_whether_it_is_loaded(session: dict[str, Any]) -> None:
    assert session["absent before"] == "b.greylist: loaded, but the DUT does not hold: 198.18.1.1, 198.18.1.2"
    assert session["absent"] is None


def test_a_refusal_by_its_tool_undoes_it(session: dict[str, Any]) -> None:
    assert session["refused"][1] == "broken.greylist: greylist said (exit 3): 203.0.113.1"
    assert session["entries after a refusal"] == 0


def test_it_is_undone_when_the_session_ends(session: dict[str, Any], tool: Path) -> None:
    assert session
    assert not tool.with_name("greylist.list").exists()
