# SPDX-License-Identifier: GPL-2.0-or-later
"""guides/own: the workflow and the hook for a repository of rules, whose commands run as they stand."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import ROOT

from .kernel import lacks

OWN = ROOT / "guides" / "own"
needs_kernel = pytest.mark.skipif(bool(lacks()), reason=lacks())
RULES = "table inet f {{\nchain c {{\ntype filter hook forward priority 0; policy drop;\ntcp dport {} accept\n}}\n}}\n"
#: In place of docker: the command, with the mounted folder in place of the image's, on this kernel.
DOCKER = """#!{python}
import os, sys
words = sys.argv[1:]
mount = words[words.index("-v") + 1].split(":")
command = words[words.index("fwlab", words.index("-v") + 3) :]
command = [word.replace(mount[1], mount[0]) for word in command if word not in ("--at-most", "5%", "--no-price")]
os.execvp(command[0], [command[0], command[1], "--here", *command[2:]])
"""
GH = '#!/bin/sh\nwhile [ "$1" != --body-file ]; do shift; done\ncp "$2" "$COMMENTED"\n'


def git(repository: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=repository, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose branch origin/main allows port 80."""
    found = tmp_path / "repository"
    (found / "rules").mkdir(parents=True)
    (found / "tools").mkdir()
    shutil.copy(OWN / "compare-rules", found / "tools")
    (found / "rules" / "fw.nft").write_text(RULES.format(80))
    git(found, "init", "-q")
    git(found, "add", "-A")
    git(found, "commit", "-qm", "first")
    git(found, "update-ref", "refs/remotes/origin/main", "HEAD")
    stands_in = tmp_path / "bin"
    stands_in.mkdir()
    for name, text in (("docker", DOCKER.format(python=sys.executable)), ("gh", GH)):
        (stands_in / name).write_text(text)
        (stands_in / name).chmod(0o755)
    return found


def environment(repository: Path) -> dict[str, str]:
    path = f"{repository.parent / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COMMENTED": str(repository.parent / "commented")}


def run_workflow(repository: Path) -> tuple[int, str]:
    """Run the shell's steps as GitHub's runner does: the exit code of the last, and the comment."""
    job = yaml.safe_load((OWN / "workflow.yml").read_text())["jobs"]["compare"]
    files = {name: repository.parent / name.lower() for name in ("GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    code = 0
    for step in job["steps"]:
        if "run" in step:
            given = dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
            known = {name: value for name, value in job["env"].items() if "${{" not in str(value)}
            names = {"GITHUB_BASE_REF": "main", "PULL_REQUEST": "1", "FWLAB_IMAGE": "fwlab", **known, **given}
            env = {**environment(repository), **names, **{name: str(file) for name, file in files.items()}}
            code = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=repository, env=env).returncode
    return code, Path(env["COMMENTED"]).read_text()


@needs_kernel
@pytest.mark.parametrize(
    ("port", "code", "says"),
    [("{ 80 }", 0, "No difference"), ("81", 1, "The new rules differ"), ("wat", 2, "could not be compared")],
)
def test_the_workflow_comments_and_ends_with_the_result(repository: Path, port: str, code: int, says: str) -> None:
    (repository / "rules" / "fw.nft").write_text(RULES.format(port))
    ended, comment = run_workflow(repository)
    assert (ended, says in comment) == (code, True), comment
    assert ("decided by" in comment) == (code == 1)
    assert ("tcp dport wat" in comment) == (code == 2)


@needs_kernel
@pytest.mark.parametrize(("port", "code"), [("{ 80 }", 0), ("81", 1)])
def test_the_hook_compares_with_the_last_commit(repository: Path, port: str, code: int) -> None:
    [hook] = yaml.safe_load((OWN / "pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    (repository / "rules" / "fw.nft").write_text(RULES.format(port))
    assert subprocess.run(shlex.split(hook["entry"]), cwd=repository, env=environment(repository)).returncode == code


def test_the_workflow_asks_for_what_it_needs_only() -> None:
    workflow = yaml.safe_load((OWN / "workflow.yml").read_text())
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert (OWN / "compare-rules").stat().st_mode & 0o111
