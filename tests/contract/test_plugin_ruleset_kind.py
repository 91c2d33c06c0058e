# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset kind that is defined outside fwlab is validated, ordered, packed for the DUT, loaded and undone."""

from __future__ import annotations

import json
from pathlib import Path

from tests.contract import PLUGINS, python

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


def test_it_is_used_as_the_built_in_ones_are(tmp_path: Path) -> None:
    submission, tool = tmp_path / "submission", tmp_path / "greylist"
    submission.mkdir()
    (submission / "a.tc").write_text("qdisc add dev eth0 clsact\n")
    (submission / "b.greylist").write_text("198.18.1.1\n198.18.1.2\n")
    (submission / "c.nft").write_text("add table ip t\n")
    tool.write_text(TOOL)
    tool.chmod(0o755)
    done = python(SESSION, submission, tmp_path, tool)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    order = found.pop("order")
    assert order.index("nft") < order.index("greylist") < order.index("tc")
    assert found == {
        "files": [["c.nft", "nft"], ["b.greylist", "greylist"], ["a.tc", "tc"]],
        "absent before": "b.greylist: loaded, but the DUT does not hold: 198.18.1.1, 198.18.1.2",
        "loaded": 3,
        "absent": None,
        "entries": 2,
        "left": [],
        "entries after": 0,
        "refused": [
            "bad.greylist:2: $(reboot) is not an address",
            "broken.greylist: greylist said (exit 3): 203.0.113.1",
        ],
        "entries after a refusal": 0,
    }
    assert not tool.with_name("greylist.list").exists(), "it is undone when the session ends"
