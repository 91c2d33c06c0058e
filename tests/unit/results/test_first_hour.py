# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of a first hour, with programs that do nothing, and their table."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import raw_result, write_document
from fwlab.model.errors import CannotMeasure
from tools import first_hour

LAB = "lab03-ipset"
#: Writes down what it was called with; a check fails, as that of a start does.
PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >>{did}
case "$*" in *check*) exit 1;; *{broken}*) exit 7;; esac
"""
PODMAN = """#!/bin/sh
while [ "$1" != IMAGE ]; do shift; done
shift
exec "$@"
"""


class Host:
    """A checkout of programs alone. `did`: what they were called with."""

    def __init__(self, top: Path) -> None:
        self.top, self.root, self.bin = top, top / "checkout", top / "bin"
        self.bin.mkdir()
        for folder in ("provision/host", "packer", ".venv/bin"):
            (self.root / folder).mkdir(parents=True)
        self.program(self.bin / "podman", PODMAN)
        self.make()

    def make(self, broken: str = "nothing") -> None:
        text = PROGRAM.format(did=self.top / "did", broken=broken)
        for path in ("provision/host/install", "provision/host/venv", "packer/build", ".venv/bin/fwlab"):
            self.program(self.root / path, text)
        for name in ("vagrant", "fwlab"):
            self.program(self.bin / name, text)
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "all"]):
            subprocess.run([*git, *words], check=True, capture_output=True)

    @staticmethod
    def program(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    @property
    def did(self) -> list[str]:
        return (self.top / "did").read_text().splitlines()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Host(tmp_path)
    monkeypatch.setenv("PATH", f"{found.bin}:{os.environ['PATH']}")
    return found


def names(steps: first_hour.Steps) -> list[str]:
    assert all(step["seconds"] >= 0 for step in steps)
    return [step["name"] for step in steps]


def test_each_step_is_done_in_a_clone_and_what_is_left_is_measured(host: Host) -> None:
    said: list[str] = []
    (host.top / "new").mkdir()
    found = first_hour.in_a_clone(Project(host.root), host.top / "new", LAB, None, said.append)
    assert names(found["steps"]) == ["the clone", *first_hour.IN_A_CLONE, *first_hour.AFTERWARDS]
    assert host.did[:4] == ["install ", "venv ", f"build --lab {LAB}", f"vagrant up {LAB}"]
    assert host.did[-1] == f"vagrant destroy -f {LAB}"
    assert len(said) == len(found["steps"]) - 1
    assert {"boxes", "cache", ".venv", "clone", "machines and their boxes"} <= set(found["disk_mib"])


def test_the_same_is_done_in_one_container(host: Host) -> None:
    steps = first_hour.in_the_image(["podman"], "IMAGE", LAB, host.top / "log", lambda _: None)
    assert names(steps) == ["the container", *first_hour.AFTERWARDS]
    assert host.did[:2] == [f"vagrant up {LAB}", f"fwlab run {LAB} raw-drop"]


def test_a_step_that_fails_ends_it_and_leaves_no_machine(host: Host) -> None:
    host.make(broken="raw-drop")
    with pytest.raises(CannotMeasure, match="ended with 7"):
        first_hour.in_the_image(["podman"], "IMAGE", LAB, host.top / "log", lambda _: None)
    (host.top / "new").mkdir()
    boxes = host.top / "the boxes"
    with pytest.raises(CannotMeasure, match="ended with 7") as found:
        first_hour.in_a_clone(Project(host.root), host.top / "new", LAB, boxes, lambda _: None)
    assert found.value.hint == f"read {host.top / 'new/log'}"
    assert "install packages.txt" in host.did
    assert f"build --import {boxes}" in host.did
    assert host.did[-1] == f"vagrant destroy -f {LAB}"


def test_the_table_has_the_newest_of_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    monkeypatch.setattr(first_hour, "find_project", lambda: project)
    assert "No such run" in first_hour.first_hours()
    for name, seconds in {"2026-01-01-debian12": 9.0, "2026-01-02-debian12": 7.4, "2026-01-01-image": 2.0}.items():
        result = {"started": f"{name[:10]}T00:00:00", "load_average": [1, 1, 0.3]}
        result["host"] = {"cpu": "a CPU", "cores": 2}
        result["steps"] = [{"name": "`vagrant up`", "seconds": seconds}]
        result |= {"disk_mib": {"cache": 900}} if "debian12" in name else {}
        raw_result(project, f"first-hour/{name}").parent.mkdir(parents=True, exist_ok=True)
        write_document(raw_result(project, f"first-hour/{name}"), json.dumps(result))
    lines = first_hour.first_hours().strip().splitlines()
    assert lines[0] == "| step, s | debian12, 2026-01-02, load 0.3 | image, 2026-01-01, load 0.3 |"
    assert lines[2:4] == ["| `vagrant up` | 7 | 2 |", "| together | 7 | 2 |"]
    assert lines[-3] == "debian12: a CPU, 2 cores; on the disk afterwards, in MiB: cache 900."
    assert lines[-1] == "image: a CPU, 2 cores."
