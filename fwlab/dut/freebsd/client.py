# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's client of the agent on a FreeBSD DUT, and the program in which the agent's Lua modules travel there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import resources
from typing import Any

from fwlab.dut.agent_client import AgentDut
from fwlab.dut.conversation import CLEARING_UP_S, AgentProgram
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.registry import KINDS

AGENT_PACKAGE = "fwlab.dut.freebsd.agent"
MAIN = "main"


def agent_program() -> bytes:
    """Every module under its name, then the main one. Errors name the module and its line."""
    texts = {
        item.name.removesuffix(".lua"): item.read_text(encoding="utf-8")
        for item in sorted(resources.files(AGENT_PACKAGE).iterdir(), key=lambda item: item.name)
        if item.name.endswith(".lua")
    }
    parts = [f'package.preload["{name}"] = {_chunk(name, text)}\n' for name, text in texts.items() if name != MAIN]
    return "".join([*parts, f"{_chunk(MAIN, texts[MAIN])}(...)\n"]).encode()


def _chunk(name: str, text: str) -> str:
    """The module's text as a function. A newline after the opening bracket is no part of a Lua string."""
    if "]==]" in text:
        raise ValueError(f"{name}.lua contains ]==], which ends the string that it is packed in")
    return f'assert(load([==[\n{text}]==], "@{name}.lua"))'


AGENT = "/var/run/fwlab-agent.lua"
_ALONE = f"lockf -k -t {CLEARING_UP_S} {AGENT}.lock"
#: Ahead of the thread that handles packets: under overload that one leaves no time for a program of usual priority.
_AHEAD = "rtprio 10"
_RUN = f"{_AHEAD} /usr/libexec/flua {AGENT}"
#: A Lua program cannot wait for two things at once, so cat passes the host's words on: it ends when the host does, and
#: the agent looks for it between trials. Then pfctl must end, too: it folds a long list for minutes. Only afterwards
#: does the agent see the end and undo. If the agent itself fails, what it has loaded is undone all the same.
_WORDS = f"{_AHEAD} cat; pkill -f '[f]wlab-pf.conf'"
_START = f"trap '' HUP PIPE; {{ {_WORDS}; }} | {{ {_RUN}; [ ! -e /var/run/fwlab-loaded ] || {_RUN} undo; }}"


def _program() -> AgentProgram:
    return AgentProgram(agent_program(), f"{_ALONE} sh -c 'cat > {AGENT}'", f'exec {_ALONE} sh -c "{_START}"')


class FreeBsdDut(AgentDut):
    """A DUT that runs FreeBSD."""

    serving = ("vtnet_rx_vq_process", "vtnet_rxq_eof", "vtnet_txq_eof")
    #: The idle thread, the profiler, the agent and its tools.
    not_of_packets = ("idle", "dtrace", "flua", "sh", "sleep", "sysctl", "true")

    def __init__(self, ssh: Ssh, devices: list[str]) -> None:
        super().__init__(ssh, devices, _program)

    def _given(self, file: RulesetFile) -> dict[str, str]:
        return {"name": file.name, "kind": file.kind, "text": KINDS[file.kind].sent(file.text)}

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        if facts["packet_sockets"]:
            raise CannotMeasure(
                "a program on the DUT reads packets from a link (bpf), which slows every packet",
                "on the DUT: `netstat -B` names it; or `vagrant reload LAB`",
            )
        return facts

    @contextlib.contextmanager
    def blackhole(self) -> Iterator[None]:
        """FreeBSD has no queue that drops all packets after pf, so they are sent."""
        yield
