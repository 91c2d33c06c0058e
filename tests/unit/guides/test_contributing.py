# SPDX-License-Identifier: GPL-2.0-or-later
"""CONTRIBUTING.md shows git's tree."""

import re
import subprocess
from pathlib import Path

from tests import ROOT
from tests.fakes.guide_pages import blocks


def shown_folders() -> list[str]:
    """The folders of the block under "Layout", with their parents."""
    [tree] = [block.body for block in blocks(ROOT / "CONTRIBUTING.md") if block.tag == "text"]
    found, parent = [], ""
    for line in tree.splitlines():
        indent, name = re.match(r"( *)(\S+/)", line).groups()
        parent = parent if indent else name
        found.append(f"{parent}{name}" if indent else name)
    return found


def test_tree_is_gits() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True, check=True)
    folders = set()
    for path in map(Path, listed.stdout.splitlines()):
        folders |= {f"{path.parts[0]}/"} if len(path.parts) > 1 else set()
        folders |= {f"fwlab/{path.parts[1]}/"} if path.parts[0] == "fwlab" and len(path.parts) > 2 else set()
    assert sorted(shown_folders()) == sorted(folders)


def test_packages_are_listed_in_import_linters_order() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    layers = re.search(r"^layers = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)[1]
    shown = [name.split("/")[1] for name in shown_folders() if name.startswith("fwlab/") and name != "fwlab/"]
    assert shown == re.findall(r'"(\w+)"', layers)
