# SPDX-License-Identifier: GPL-2.0-or-later
"""Linters as tests. A missing one is skipped on a desk and a failure in continuous integration.

The engine's compilers, Packer's templates and the Vagrantfile are tried by the tests that are named for them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.offline.programs import program

ROOT = Path(__file__).resolve().parents[2]
#: Where what is made, and not written, lies.
MADE = {".git", ".venv", ".vagrant", ".fwlab", "build", "site", "reports", "__pycache__"}


@cache
def written() -> tuple[Path, ...]:
    """The project's files, as os.walk finds them."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in MADE and not name.endswith(".egg-info")]
        found += [Path(folder) / name for name in names]
    return tuple(sorted(path for path in found if path.is_file()))


def starting_with(*shells: str) -> list[Path]:
    """Scripts whose first line names one of these programs."""
    found = []
    for path in written():
        with path.open("rb") as file:
            first = file.readline(80).decode(errors="replace")
        if first.startswith("#!") and first.split("/")[-1].split()[-1] in shells:
            found.append(path)
    return found


def no_complaint(argv: list[str], given: str | None = None) -> None:
    done = subprocess.run(argv, cwd=ROOT, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff() -> None:
    no_complaint([program("ruff", Path(sys.executable).parent), "check", "--no-cache", "."])


def test_ruff_format() -> None:
    no_complaint([program("ruff", Path(sys.executable).parent), "format", "--no-cache", "--check", "."])


def test_imports_follow_the_layers() -> None:
    """The contracts are in pyproject.toml."""
    no_complaint([program("lint-imports", Path(sys.executable).parent), "--no-cache"])


def test_shellcheck() -> None:
    scripts = starting_with("sh", "bash", "dash")
    assert len(scripts) > 20, "shell scripts were not found"
    no_complaint([program("shellcheck"), *map(str, scripts)])


def test_programs_can_be_run() -> None:
    """Those whose name has no ending; the others are given to their interpreter by a program."""
    programs = [path for path in starting_with("sh", "bash", "dash", "python3") if not path.suffix]
    assert len(programs) > 10
    assert not [str(path) for path in programs if not os.access(path, os.X_OK)]


def test_python_scripts_without_ending() -> None:
    """ruff finds files by their ending; a program may have none."""
    scripts = [path for path in starting_with("python3") if not path.suffix]
    assert scripts, "no script was found"
    no_complaint([program("ruff", Path(sys.executable).parent), "check", "--no-cache", *map(str, scripts)])


def test_ruby_warns_of_nothing() -> None:
    ruby = program("ruby")
    sources = [path for path in written() if path.suffix == ".rb" or path.name == "Vagrantfile"]
    assert len(sources) >= 4
    for path in sources:
        done = subprocess.run([ruby, "-wc", str(path)], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "Syntax OK\n", ""), path


def test_erb_templates_are_ruby() -> None:
    ruby = program("ruby")
    script = (
        "require 'erb';ARGV.each { |f| RubyVM::InstructionSequence.compile(ERB.new(File.read(f), trim_mode: '-').src) }"
    )
    templates = [str(path) for path in written() if path.suffix == ".erb"]
    assert templates
    no_complaint([ruby, "-we", script, *templates])
