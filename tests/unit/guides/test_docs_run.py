# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages' commands that need no machine run, in a copy of what they read."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fwlab.checkout.project import Project
from fwlab.cli.main import app
from tests import ROOT
from tests.fakes.guide_pages import Command, blocks, commands, relative
from tests.unit.guides.test_docs import LABS, PAGES
from tools.labs import questions_of
from tools.pages import refresh

#: `fwlab` commands that need no machine.
OFFLINE = ("init", "list", "predict", "start", "status", "goto", "reset", "traffic")


@pytest.fixture
def checkout(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the offline commands read, without students' files: of the labs (more than a thousand folders) the
    test's one, or those that its page names, or all."""
    arguments = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    labs = [arguments["lab"]] if "lab" in arguments else [*LABS, "common", "_template"]
    if "page" in arguments:
        named = arguments["page"].read_text() + str(arguments["page"])
        labs = [lab for lab in labs if lab in named or lab not in LABS]
    shutil.copy(ROOT / "topology.yml", tmp_path)
    for folder in ("tests/data/trex-vectors", *(f"labs/{lab}" for lab in labs)):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=_own_work)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _own_work(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder).name == "work" and name not in ("README.md", ".gitignore")]


def offline(command: Command) -> bool:
    words = command.words
    everything = words[1:3] == ("traffic", "show") and len(words) == 4  # test_labs plays all traffic of each lab
    if Path(words[0]).name != "fwlab" or command.tag != "sh" or everything:
        return False
    return words[1] in OFFLINE or words[1:3] == ("author", "new-lab")


#: Pages of which at least one command runs without a machine. Only for these the labs are copied.
WITH_OFFLINE = [page for page in PAGES if any(offline(one) for one in commands(page, ROOT))]


@pytest.mark.parametrize("page", WITH_OFFLINE, ids=relative)
def test_offline_commands_run(page: Path, checkout: Path) -> None:
    """In the page's order, because later ones may use what earlier ones made."""
    for command in commands(page, ROOT):
        if offline(command):
            result = CliRunner().invoke(app, list(command.words[1:]))
            assert result.exit_code == 0, f"{command}: {result.output}{result.exception}"
            assert result.output, f"{command}: printed nothing"


@pytest.mark.parametrize("lab", LABS)
def test_shell_lines_of_a_guide_do_what_they_say(lab: str, checkout: Path) -> None:
    """Each sed and loop of the exercises runs on the real starts, and changes, writes or prints something."""
    assert CliRunner().invoke(app, ["start", lab]).exit_code == 0
    for block in blocks(ROOT / "labs" / lab / "README.md"):
        for line in block.body.splitlines() if block.tag == "sh" else []:
            if re.match(r"(sed|for)\b", line):
                before = _contents(checkout, lab)
                done = subprocess.run(["sh", "-ec", line], text=True, capture_output=True)
                assert done.returncode == 0, f"{line}: {done.stderr}"
                assert done.stdout or _contents(checkout, lab) != before, f"{line}: did nothing"


def _contents(checkout: Path, lab: str) -> dict[Path, int]:
    """What a student has: the work, and files where the commands are typed."""
    files = [*(checkout / "labs" / lab / "work").rglob("*"), *checkout.glob("*")]
    return {path: hash(path.read_bytes()) for path in files if path.is_file()}


def test_labs_table_has_a_row_per_lab(checkout: Path) -> None:
    shutil.copytree("labs/_template", "labs/lab99-example")
    rows = questions_of(Project(checkout)).splitlines()[3:]
    assert [re.match(r"\| \[(\S+)\]", row)[1] for row in rows] == [*LABS, "lab99-example"]


def test_stale_pages_are_written_once(checkout: Path) -> None:
    for other in checkout.glob("labs/*/*.md"):  # figures need results/
        other.unlink()
    page = checkout / "README.md"
    call = "<!-- [[[cog\nfrom tools import labs\ncog.outl(labs.questions())\n]]] -->"
    page.write_text(f"before\n{call}\nold\n<!-- [[[end]]] -->\nafter\n")
    assert refresh(Project(checkout)) == [page]
    assert page.read_text() == f"before\n{call}\n{questions_of(Project(checkout))}\n<!-- [[[end]]] -->\nafter\n"
    assert refresh(Project(checkout)) == []
