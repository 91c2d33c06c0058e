# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tools waits` types commands and times them; here the commands are recorded instead of run."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, find_project, load_topology
from fwlab.measure.labs import load_lab
from fwlab.model.errors import CannotMeasure
from tools import waits as waits_tool

PROJECT = find_project()
LAB = load_lab(PROJECT, "lab03-ipset")


class Typed:
    """What would have been typed. `vagrant up` gives machines of this process's size, `destroy` takes them away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.commands: list[str] = []
        self.handed_in: list[str] = []
        self.machines: dict[str, int] = {}
        self.fails = ""
        monkeypatch.setattr(waits_tool, "_timed", self)
        monkeypatch.setattr(waits_tool, "_machines", lambda *_: self.machines)
        monkeypatch.setenv("FWLAB_CACHE", str(tmp_path))
        (tmp_path / "saved").mkdir()
        (tmp_path / "saved" / "state").write_bytes(b"\0" * (3 << 20))

    def __call__(self, project: Project, words: Sequence[str], **environment: str) -> float:
        assert project == PROJECT
        command = " ".join([*(f"{name}={value}" for name, value in environment.items()), *words[:3]])
        self.commands.append("grade" if "--testinfra" in words else command)
        if self.fails and self.fails in self.commands[-1]:
            raise CannotMeasure(f"{command} failed", "fwlab doctor")
        if "up" in words:
            self.machines = {"dut": os.getpid()}
        elif "destroy" in words:
            self.machines = {}
        elif "run" not in words:
            self._grade(dict(word.lstrip("-").split("=", 1) for word in words if "=" in word))
        return float(len(self.commands))

    def _grade(self, options: dict[str, str]) -> None:
        folder, results = Path(options["submissions"]) / "ada", Path(options["results"])
        self.handed_in = sorted(path.name for path in folder.iterdir() if any(path.iterdir()))
        results.mkdir()
        (results / "run.json").write_text(json.dumps({"exercises": [{"id": self.handed_in[0], "wall_s": 7.5}]}))
        with (results / "marks.csv").open("w", newline="") as file:
            rows = csv.DictWriter(file, ["exercise", "verdict"])
            rows.writeheader()
            rows.writerows({"exercise": name, "verdict": "pass"} for name in self.handed_in)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    return Typed(monkeypatch, tmp_path)


def waits(**fields: bool) -> dict:
    return waits_tool.waits(PROJECT, LAB, load_topology(PROJECT), lambda _: None, **fields)


def test_each_wait_is_that_of_its_command(typed: Typed) -> None:
    found = waits()
    boots = [number for number, command in enumerate(typed.commands, 1) if command.startswith("FWLAB_SAVED=no")]
    restored = [number for number, command in enumerate(typed.commands, 1) if command.startswith("FWLAB_SAVED=yes")]
    assert (found["up_by_booting_s"], found["up_from_saved_state_s"]) == (boots[0], restored[1])
    assert typed.commands[restored[1] - 2] == "vagrant destroy -f"
    assert found["one_student_graded_s"] == typed.commands.index("grade") + 1
    assert found["resident_mib"]["dut"] > 10
    assert found["cache_mib"] == {"boxes": 0, "saved": 3, "bases": 0}


def test_every_case_is_measured_on_request_with_machines_of_its_own(typed: Typed) -> None:
    assert "every_case_measured_s" not in waits()
    typed.commands.clear()
    found = waits(every_case=True)
    at = next(number for number, command in enumerate(typed.commands) if command.endswith("fwlab run lab03-ipset"))
    assert found["every_case_measured_s"] == at + 1
    assert typed.commands[at - 1] == "vagrant destroy -f"


def test_the_student_hands_in_what_counts_for_the_mark(typed: Typed) -> None:
    found = waits()
    core = [exercise.id for exercise in LAB.exercises if not exercise.further]
    assert typed.handed_in == core
    assert [mark["exercise"] for mark in found["marks"]] == core


@pytest.mark.parametrize("command", ["FWLAB_SAVED=no", "FWLAB_SAVED=yes", "grade"])
def test_whatever_fails_no_machine_is_left(typed: Typed, command: str) -> None:
    typed.fails = command
    with pytest.raises(CannotMeasure):
        waits()
    assert typed.commands[-1] == "vagrant destroy -f"
    assert typed.machines == {}


def test_machines_in_use_are_left_alone(typed: Typed) -> None:
    typed.machines = {"dut": os.getpid()}
    with pytest.raises(CannotMeasure, match="lab03-ipset has machines"):
        waits()
    assert typed.commands == []


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(CannotMeasure, match=r"sh -c exit 3 failed \(exit 3\)"):
        waits_tool._timed(PROJECT, ["sh", "-c", "exit 3"])
