# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of the machines: states, memory and holders as they are, and Vagrant's own commands."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from nicegui import ui

from fwlab.checkout.project import Project
from fwlab.testbed.hardware import domain_prefix
from fwlab.testbed.session_lock import machines_held
from fwlab.web.machines import seen
from tests.fakes.student_checkout import LAB
from tests.unit.web.conftest import until, visit

ROLES = ("", "-generator", "-sink")


@pytest.fixture
def project(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three machines of this checkout, and those of another; Vagrant writes down what it is given."""
    programs = checkout / "programs"
    programs.mkdir()
    own = [domain_prefix(checkout) + LAB + role for role in ROLES]
    listed = "".join(f" - {name} running\n" for name in [*own, f"fwlab-00000000-{LAB}"])
    used = "".join(f"Domain: '{name}'\n  balloon.rss=204800\n\n" for name in [*own, f"fwlab-00000000-{LAB}"])
    (programs / "list").write_text(listed)
    (programs / "domstats").write_text(used)
    for name, text in {
        "virsh": f"for word; do [ -f {programs}/$word ] && cat {programs}/$word; done; true",
        "vagrant": f"echo $* >> {programs}/given; echo done",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return Project(checkout)


def test_what_there_is_and_who_has_it(project: Project) -> None:
    found = seen(project)
    assert found.states == {LAB: {"dut": "running", "generator": "running", "sink": "running"}}
    assert (found.memory, found.holders) == ({LAB: 600}, {})
    with machines_held(project, LAB, LAB, lambda _: None):
        assert f"pid {os.getpid()}" in seen(project).holders[LAB]
    assert seen(project).holders == {}


def test_machines_are_halted_and_destroyed_as_vagrant_does(project: Project) -> None:
    async def walk() -> None:
        async with visit(project.root) as (user, jobs):
            await user.open("/machines")
            await user.should_see("600 MiB", retries=100)
            user.find(kind=ui.button, content="Halt").click()
            await until(lambda: jobs.latest is not None and not jobs.latest.running)
            user.find(kind=ui.button, content="Destroy").click()
            await user.should_see("your rulesets stay")
            user.find(kind=ui.button, content="Destroy them").click()
            await until(lambda: jobs.latest.words[0] == "destroy" and not jobs.latest.running)
            with machines_held(project, LAB, LAB, lambda _: None):
                await user.should_not_see("Halt", retries=100)

    asyncio.run(walk())
    assert (project.root / "programs" / "given").read_text() == f"halt {LAB}\ndestroy -f {LAB}\n"


def test_a_host_is_examined_as_doctor_does(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open("/machines")
            user.find(kind=ui.button, content="Examine it").click()
            await user.should_see("the boxes are not built", retries=300)
            await user.should_see("next: make boxes")

    asyncio.run(walk())
