# SPDX-License-Identifier: GPL-2.0-or-later
"""Which machines make further sets, and how many a host can run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fwlab.grading import set_machines
from fwlab.grading.grading_plan import GradingOptions, plan_grading
from fwlab.host.project import Project
from fwlab.measure import host_room
from fwlab.model.errors import BadInput
from fwlab.testbed.machine_record import record_path
from fwlab.testbed.session_lock import machines_held
from tests.offline import factories
from tests.offline.fake_class import RECORD

ROOT = Path(__file__).resolve().parents[2]
LAB, OTHERS = "lab98-trouble", ("lab94-one", "lab95-two", "lab96-three", "lab97-four")
Hosts = Callable[..., None]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Five labs, a class of one, and ports that nobody uses."""
    monkeypatch.setenv("FWLAB_PORT_OFFSET", "9000")
    shutil.copy(ROOT / "topology.yml", tmp_path)
    for lab in (LAB, *OTHERS):
        folder = tmp_path / "labs" / lab
        folder.mkdir(parents=True)
        (folder / "lab.yml").write_text((ROOT / "tests/offline/errors/good.yml").read_text().replace(LAB, lab))
        (folder / "profile.py").write_text(factories.PROFILE)
    (tmp_path / "class" / "ann" / "ex1-block").mkdir(parents=True)
    return Project(tmp_path)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    """Sets how many cores and how much memory (MiB) this host has."""

    def has(cores: int, memory: int) -> None:
        little = psutil.virtual_memory()._replace(available=memory << 20)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))
        monkeypatch.setattr(psutil, "virtual_memory", lambda: little)

    has(64, 1 << 20)
    return has


def chosen(project: Project, sets: int, **options: object) -> list[str]:
    given = GradingOptions(labs=[LAB], submissions=project.root / "class", sets=sets, **options)
    return [lab.id for lab in plan_grading(project, given).sets]


def change(project: Project, lab: str, needs: str) -> None:
    path = project.labs / lab / "lab.yml"
    path.write_text(f"{path.read_text()}needs: {needs}\n")


def test_other_labs_lend_their_machines(project: Project, host: Hosts) -> None:
    assert chosen(project, 1) == []
    assert chosen(project, 3) == ["lab94-one", "lab95-two"]
    assert chosen(project, 3, machines="lab94-one") == ["lab95-two", "lab96-three"]
    assert chosen(project, 3, one_of_sets=True) == [], "a set starts no further ones"


def test_machines_that_run_come_first(project: Project, host: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_machines, "dut_runs", lambda _topology, number: number == 97)
    assert chosen(project, 3) == ["lab97-four", "lab94-one"]


def test_machines_of_another_make_or_in_use_are_left_alone(project: Project, host: Hosts) -> None:
    change(project, "lab94-one", "{ systems: [freebsd] }")
    change(project, "lab95-two", "{ nics: [vmxnet3] }")
    (project.labs / "lab96-three" / "lab.yml").write_text("no: lab\n")
    assert chosen(project, 2) == ["lab97-four"]
    with machines_held(project, "lab97-four", LAB, pytest.fail), pytest.raises(BadInput) as error:
        chosen(project, 2)
    assert str(error.value).startswith("--sets 2: there are machines for 1 only: ")


def test_halted_machines_are_left_alone(project: Project, host: Hosts) -> None:
    path = record_path(project, "lab94-one")
    path.parent.mkdir(parents=True)
    path.write_text(RECORD)
    assert chosen(project, 2) == ["lab95-two"]
    path.write_text("not a record")
    assert chosen(project, 2) == ["lab95-two"]


def test_a_host_that_is_too_small(project: Project, host: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    host(5, 1 << 20)
    assert chosen(project, 2) == ["lab94-one"]
    with pytest.raises(BadInput) as error:
        chosen(project, 3)
    assert str(error.value).startswith("3 sets of machines need 6 cores, this host has 5\n  next: use fewer sets, ")
    assert "--force-sets" in error.value.hint
    assert len(chosen(project, 3, force_sets=True)) == 2
    each = host_room.memory_of_a_set(project)
    host(6, 3 * each)
    assert len(chosen(project, 3)) == 2
    host(6, 3 * each - 1)
    with pytest.raises(BadInput, match=f"^3 more sets of machines need {3 * each} MiB of memory, {3 * each - 1} are"):
        chosen(project, 3)
    monkeypatch.setattr(set_machines, "dut_runs", lambda _topology, number: number == 97)
    assert len(chosen(project, 3)) == 2, "machines that run have their memory already"
