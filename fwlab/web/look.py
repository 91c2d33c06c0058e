# SPDX-License-Identifier: GPL-2.0-or-later
"""Look: a shell on the DUT while `fwlab hold` keeps a ruleset there, next to its counters; and a shell on this host."""

import asyncio
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nicegui import ui

from fwlab.checkout.project import Project, load_topology
from fwlab.host.ssh import write_ssh_config
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Lab
from fwlab.web.jobs import FWLAB
from fwlab.web.terminals import Terminal, Terminals
from fwlab.web.view import attempt, words

EVERY_S = 0.5
#: Names of terminals.
HOLD, COUNTERS, SHELL = "hold", "counters", "shell"
#: `fwlab hold` says so once the ruleset is on the DUT.
LOADED = b" is loaded; played: "
#: What lists the rules with their counters, each second, in place of the listing before. Only what is loaded is asked:
#: a question would load the module.
LISTING = r"""
loaded() { grep -q "^$1" /proc/modules; }
while :; do
  printf '\033[H'
  {
    loaded iptable_ && sudo iptables-legacy-save -c
    loaded ip6table_ && sudo ip6tables-legacy-save -c
    loaded nf_tables && sudo nft list ruleset
    loaded 'ip_set ' && sudo ipset list -t
  } | grep -v '^#' | head -n 60 | sed 's/$/\x1b[K/'
  printf '\033[J'
  sleep 1
done
"""


def look_page(project: Project, lab: Lab, terminals: Terminals) -> None:
    """Draw the page of a lab."""
    _Look(project, lab, terminals).draw()


class _Look:
    def __init__(self, project: Project, lab: Lab, terminals: Terminals) -> None:
        self._project, self._lab, self._terminals = project, lab, terminals
        self._seen: tuple[object, ...] = ()

    def draw(self) -> None:
        words(
            "p",
            "A ruleset stays on the DUT, and a trickle of its traffic passes. Look around in the shell; `exit` puts "
            "the DUT back into its start state.",
        )
        exercises = {exercise.id: f"{exercise.id} (your ruleset)" for exercise in self._lab.exercises}
        cases = {case.id: f"{case.id} ({case.title})" for case in self._lab.cases.values()}
        with ui.element("div").classes("row"):
            chosen = ui.select({**exercises, **cases}, label="Which ruleset?", with_input=True).mark("held")
            ui.button("Hold", on_click=lambda: self._hold(chosen.value)).props("no-caps")
            ui.button("Let go", on_click=self._let_go, color=None).props("outline no-caps")
        self.screens()
        ui.timer(EVERY_S, self._look)

    def _look(self) -> None:
        held, counters = map(self._terminals.of, (HOLD, COUNTERS))
        if counters is not None and counters.running and (held is None or not held.running):
            counters.end()
        seen, self._seen = self._seen, (held, counters)
        if seen != self._seen:
            self.screens.refresh()

    @ui.refreshable_method
    def screens(self) -> None:
        with ui.element("div").classes("pair"):
            for name, title in ((HOLD, "The DUT"), (COUNTERS, "Rules and counters")):
                terminal = self._terminals.of(name)
                if terminal is not None:
                    with ui.element("section"):
                        words("h2", title)
                        terminal.show(title)

    async def _hold(self, name: str | None) -> None:
        with attempt():
            if not name:
                raise BadInput("choose a ruleset")
            held = self._terminals.of(HOLD)
            if held is not None and held.running:
                raise BadInput("a ruleset is held already", "let it go first")
            topology = load_topology(self._project)
            config = write_ssh_config(self._project, topology, self._lab.number, self._lab.id)
            counters = ("ssh", "-q", "-F", str(config), "dut", f"sh -c {shlex.quote(LISTING)}")
            begun = list[asyncio.Task[Terminal]]()

            def said(kept: bytes) -> None:
                if LOADED in kept and not begun:
                    begun.append(asyncio.create_task(self._terminals.start(COUNTERS, counters, os.environ)))

            await _started(self._terminals, HOLD, (*FWLAB, "hold", self._lab.id, name), os.environ, said)

    def _let_go(self) -> None:
        for name in (COUNTERS, HOLD):
            if terminal := self._terminals.of(name):
                terminal.end()


def shell_page(terminals: Terminals) -> None:
    """Draw the page of the host's shell."""

    @ui.refreshable
    def screen() -> None:
        terminal = terminals.of(SHELL)
        if terminal is not None and terminal.running:
            terminal.show("A shell on this host")
        else:
            ui.button("Open a shell", on_click=begin).props("no-caps")

    async def begin() -> None:
        with attempt():
            programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
            shell = os.environ.get("SHELL", "/bin/sh")
            await _started(terminals, SHELL, (shell,), {**os.environ, "PATH": programs})
            screen.refresh()

    words("p", f"On this host, in {terminals.folder}; `fwlab` and `vagrant` work here as in any terminal.")
    screen()


async def _started(
    terminals: Terminals,
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    on_output: Callable[[bytes], None] = lambda _kept: None,
) -> None:
    try:
        await terminals.start(name, command, environment, on_output)
    except OSError as error:
        raise CannotMeasure(f"{command[0]}: {error.strerror}", "fwlab doctor") from error
