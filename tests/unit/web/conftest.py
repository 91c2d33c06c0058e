# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages over a student's checkout, as a browser without a window sees them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from nicegui.testing import User
from nicegui.testing.user_simulation import user_simulation

from fwlab.checkout.project import Project
from fwlab.web.instructor import Classroom
from fwlab.web.jobs import Jobs
from fwlab.web.pages import add_pages
from fwlab.web.terminals import Terminals
from tests.fakes import student_checkout as checkouts
from tests.fakes.measuring_command import COMMAND

#: Seconds to wait for a command, on a busy host.
PATIENCE_S = 120.0


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = checkouts.make(tmp_path)
    (folder / "README.md").write_text(
        "# The lab\n\n<!-- [[[cog\nnot shown\n]]] -->\n\nA sentence.\n\n"
        f"### {checkouts.EX1}: one\n\nWhich rule?\n\n<details>\n\nThat rule.\n\n</details>\n\n## The end\n"
    )
    (folder / "hints.yml").write_text(f"{checkouts.EX1}: [Where do you look?, Look there.]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextlib.asynccontextmanager
async def visit(
    checkout: Path, command: Sequence[str] = COMMAND, classroom: Classroom | None = None
) -> AsyncIterator[tuple[User, Jobs]]:
    own = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "fwlab"}
    try:
        async with user_simulation() as user:
            jobs = Jobs(checkout, command)
            terminals = Terminals(checkout)
            add_pages(Project(checkout), jobs, terminals, classroom)
            try:
                yield user, jobs
            finally:
                await jobs.close()
                await terminals.close()
    finally:
        sys.modules.update(own)  # NiceGUI forgets modules that have pages, and their parents


async def until(condition: Callable[[], object]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.05)
