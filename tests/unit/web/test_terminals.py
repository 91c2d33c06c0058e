# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in terminals: what is typed reaches them, what they say is kept, and nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from nicegui import ui

from fwlab.web.terminals import KEPT, Terminals
from tests.fakes.student_checkout import LAB
from tests.unit.web.conftest import until, visit

PID = re.compile(rb"pid (\d+)")
SHELL = ("/bin/sh", "-i")


def test_a_shell_has_its_terminal_and_goes_with_the_server(tmp_path: Path) -> None:
    heard = [b""]

    async def talk() -> None:
        terminals = Terminals(tmp_path)
        shell = await terminals.start("shell", SHELL, os.environ, heard.append)
        shell._resize(37, 101)
        shell._type("tty; stty size; sh -c 'echo pid $$; exec sleep 300'\n")
        await until(lambda: PID.search(heard[-1]) and b"37 101" in heard[-1])
        assert terminals.of("shell").running
        await terminals.close()
        assert not shell.running
        shell._type("into nowhere")
        found = Path("/proc", PID.search(heard[-1])[1].decode())
        await until(lambda: not (found / "exe").exists())  # gone, or a zombie

    asyncio.run(talk())
    assert b"/dev/pts/" in heard[-1]


def test_a_new_one_ends_the_one_before_and_long_output_is_cut(tmp_path: Path) -> None:
    heard = [b""]

    async def talk() -> None:
        terminals = Terminals(tmp_path)
        before = await terminals.start("shell", SHELL, os.environ)
        after = await terminals.start("shell", ("seq", "99999"), os.environ, heard.append)
        await until(lambda: not after.running and b"99999" in heard[-1])
        assert not before.running
        await terminals.close()

    asyncio.run(talk())
    assert len(heard[-1]) == KEPT


def test_the_page_shows_what_a_shell_said_before(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open("/machines")
            await user.should_see("A shell on this host")
            await user.open("/shell")
            user.find(kind=ui.button, content="Open a shell").click()
            await user.should_see(kind=ui.xterm, retries=50)
            await user.open("/shell")
            await user.should_see(kind=ui.xterm)

    asyncio.run(walk())


def test_a_ruleset_is_held_by_the_command(checkout: Path) -> None:
    async def walk() -> None:
        async with visit(checkout) as (user, _):
            await user.open(f"/lab/{LAB}/look")
            user.find(kind=ui.button, content="Hold").click()
            await user.should_see("choose a ruleset")
            [chosen] = user.find(marker="held").elements
            assert "ex1-block" in chosen.options

    asyncio.run(walk())
