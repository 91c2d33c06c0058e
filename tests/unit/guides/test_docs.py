# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages are correct: commands parse, messages exist, and generated parts are fresh. test_docs_run.py runs commands.

The convention for fences is in guide_pages.py.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache, partial
from pathlib import Path

import pytest
import typer

from fwlab.cli.hold import choose_held
from fwlab.cli.main import app
from fwlab.cli.pytest_plugin import pytest_addoption
from fwlab.images.boxes import IMAGES
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import chosen_cases, chosen_exercises
from fwlab.student.workbook import predictions_of, workbook_of
from fwlab.testbed.host_links.prepare import kinds_from
from fwlab.testbed.link_kinds import LINKS
from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT, TOPOLOGY
from tests.fakes.guide_pages import DUT_PROGRAMS, PLACEHOLDERS, Command, blocks, commands, messages, relative
from tools.architecture import layers
from tools.pages import all_pages, rendered

LABS = LAB_IDS
#: Values of the Makefile's variables.
VARIABLES = {"LAB": LABS, "LINKS": LINKS, "SETS": ("1", "2"), "STUDENTS": ("1",)}
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "guides").glob("*.md")), *sorted(ROOT.glob("labs/*/README.md"))]

#: Common programs of a host. Readers install Wireshark themselves.
HOST_PROGRAMS = {"cd", "cp", "git", "podman", "pre-commit", "sed", "seq", "source", "uv", "wireshark"}
VAGRANT_VERBS = {"up", "halt", "destroy", "status", "reload", "ssh", "ssh-config", "suspend", "resume", "global-status"}
VAGRANT_OPTIONS = {"-f", "-c"}
#: Files of tests that a reader writes.
YOURS = {"test_mine.py", "test_state.py"}
#: pytest's own options that the guides use, and whether a value follows.
PYTEST_OPTIONS = {"-k": True, "-x": False, "-v": False, "--sudo": False}

#: Made once for hundreds of commands.
COMMAND_LINE = typer.main.get_command(app)
lab_of = cache(partial(load_lab, PROJECT))

each_page = pytest.mark.parametrize("page", PAGES, ids=relative)


# ---- commands parse ------------------------------------------------------------------------------


@each_page
def test_fences_have_a_known_tag(page: Path) -> None:
    assert not [f"line {block.line}" for block in blocks(page) if block.tag not in ("sh", "dut", "text", "python")]
    assert page.read_text().count("```") == 2 * len(blocks(page)), "a fence is not closed"
    assert not re.search(r"^``(?!`)", page.read_text(), re.MULTILINE), "a fence has three backticks"


@each_page
def test_shell_blocks_are_shell(page: Path) -> None:
    for block in blocks(page):
        if block.tag in ("sh", "dut"):
            done = subprocess.run(["sh", "-n"], input=block.body, text=True, capture_output=True)
            assert done.returncode == 0, f"line {block.line}: {done.stderr}"
        elif block.tag == "python":
            compile(block.body, f"{page.name}:{block.line}", "exec")


@each_page
def test_commands_parse(page: Path) -> None:
    for command in commands(page, ROOT):
        try:
            parse(command)
        except Exception as error:
            raise AssertionError(f"{command}: {error!r}") from error


def parse(command: Command) -> None:
    program, *words = [word for word in command.words if word != "srun"]  # Slurm's, in front of a command
    program = Path(program).name
    bare = command.tag == "inline"
    if command.tag == "dut":
        assert program in DUT_PROGRAMS
    elif program == "make":
        make(words)
    elif program == "vagrant":
        vagrant(words, bare)
    elif program == "fwlab":
        fwlab(words, bare)
    elif program == "pytest":
        pytest_line(words)
    elif command.words[0] == "packer/build":
        assert set(words) <= set(IMAGES)
    elif command.words[0] == "provision/host/links":
        host_links(words)
    else:
        assert program in HOST_PROGRAMS


def host_links(words: list[str]) -> None:
    verb, *rest = words
    assert verb in ("up", "restore", "status")
    assert set(rest[:1]) <= set(LABS)
    kinds_from(rest[1:], TOPOLOGY, {})


def test_dut_has_its_programs() -> None:
    lists = [ROOT / "provision" / role / "packages.txt" for role in ("common", "dut-linux")]
    installed = {line.strip() for path in lists for line in path.read_text().splitlines()}
    assert {package for package in DUT_PROGRAMS.values() if package} <= installed


def make(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z][a-z0-9-]*):", makefile, re.MULTILINE)
    for word in words:
        name, equals, value = word.partition("=")
        if name in ("EXPORT", "IMPORT"):  # a folder of the reader's
            assert {"boxes", "image"} & set(words)
            assert value
            assert f"--{name.lower()} '$({name})'" in makefile
            continue
        assert value in VARIABLES[name] if equals else word in targets, word


def vagrant(words: list[str], bare: bool) -> None:
    verb, *rest = words
    if verb == "snapshot":
        assert rest[:1] in (["save"], ["restore"]) or (bare and not rest)
        assert len(rest) != 2
        rest = rest[1:2]
    else:
        assert verb in VAGRANT_VERBS
    if "-c" in rest:
        rest = rest[: rest.index("-c") + 1]  # the rest is typed on the machine
    assert {word for word in rest if word.startswith("-")} <= VAGRANT_OPTIONS
    machines = [word for word in rest if not word.startswith("-")]
    assert len(machines) == 1 or (bare and not machines)
    roles = ("", "-generator", "-sink")
    assert set(machines) <= {lab + role for lab in [*LABS, PLACEHOLDERS["LAB"]] for role in roles}


def fwlab(words: list[str], bare: bool) -> None:
    """Let typer parse the command without running it, then look up the names."""
    command, context = COMMAND_LINE, None
    if words and words[0].startswith("--"):
        assert words[0] in {option for one in COMMAND_LINE.params for option in one.opts}
        return
    while hasattr(command, "commands"):
        context = typer.Context(command, parent=context)
        name, *words = words
        assert name in command.commands, name
        command = command.commands[name]
    if bare and not words:
        return  # a command's name, not a line to type
    values = command.make_context(command.name, words, parent=context).params
    # An author's own lab is a copy of the template.
    lab_id = values.get("lab")
    if lab_id is None or lab_id == "lab99-example":
        return
    lab = lab_of(lab_id)
    chosen_cases(lab, list(values.get("cases") or []))
    chosen_exercises(lab, values.get("exercise"))
    asked = values.get("question")
    if asked not in (None, *(one.id for one in (*predictions_of(PROJECT, lab), *workbook_of(PROJECT, lab)))):
        chosen_exercises(lab, asked)
    assert "name" not in values or choose_held(lab, values["name"])
    assert values.get("traffic") is None or values["traffic"] in lab.traffic


class Options:
    """Replaces pytest's parser, to learn which options the plugin adds."""

    def __init__(self) -> None:
        self.known: dict[str, dict] = {}

    def getgroup(self, *_: str) -> Options:
        return self

    def addoption(self, *names: str, **about: object) -> None:
        self.known |= dict.fromkeys(names, about)


def pytest_line(words: list[str]) -> None:
    options = Options()
    pytest_addoption(options)
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in options.known:
            about = options.known[name]
            if about.get("action") != "store_true":
                value = value if equals else next(rest)
                assert value in (about.get("choices") or (value,)), word
                assert name != "--lab" or value in LABS, word
        elif name in ("--hosts", "--ssh-config"):  # Testinfra's
            assert value
        elif word in PYTEST_OPTIONS:
            assert not PYTEST_OPTIONS[word] or next(rest)
        else:
            assert word in YOURS or (ROOT / word).exists(), word


# ---- messages and generated parts ------------------------------------------------------------------


SOURCES = "\n".join(
    path.read_text(errors="replace")
    for folder in ("fwlab", "tools", "packer", "provision")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and path.suffix in ("", ".lua", ".py", ".rb", ".sh")
)
#: Joins messages that span two lines of source, as the language does.
JOINED = re.sub(r"\"\s*\\?\s*f?\"", "", SOURCES)


def test_quoted_messages_are_in_the_source() -> None:
    """The fixed parts of each message are in the source."""
    for message in messages(ROOT / "guides" / "troubleshooting.md"):
        parts = [part.strip() for part in re.split(r"…|\d+", message.replace("lab03-ipset", "…"))]
        assert any(len(part) > 2 for part in parts), message
        assert not [part for part in parts if len(part) > 2 and part not in JOINED], message


@pytest.mark.parametrize("page", all_pages(PROJECT), ids=relative)
def test_generated_parts_are_fresh(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert rendered(page) == page.read_text(), "stale: make readme"


def test_every_guide_is_linked_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert not [page.name for page in (ROOT / "guides").glob("*.md") if f"(guides/{page.name})" not in text]


def test_contributings_tree_is_gits_and_in_import_linters_order() -> None:
    [tree] = [block.body for block in blocks(ROOT / "CONTRIBUTING.md") if block.tag == "text"]
    shown, parent = [], ""
    for line in tree.splitlines():
        indent, name = re.match(r"( *)(\S+/)", line).groups()
        parent = parent if indent else name
        shown.append(f"{parent}{name}" if indent else name)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True, check=True)
    folders = set()
    for path in map(Path, listed.stdout.splitlines()):
        folders |= {f"{path.parts[0]}/"} if len(path.parts) > 1 else set()
        folders |= {f"fwlab/{path.parts[1]}/"} if path.parts[0] == "fwlab" and len(path.parts) > 2 else set()
    assert sorted(shown) == sorted(folders)
    packages = [name.split("/")[1] for name in shown if name.startswith("fwlab/") and name != "fwlab/"]
    assert packages == layers(ROOT)
