# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's client of the agent on a Linux DUT."""

import base64
import hashlib
import zlib
from typing import Any

from fwlab.dut.agent_client import AgentDut
from fwlab.dut.agent_protocol import Forgotten
from fwlab.dut.conversation import CLEARING_UP_S, AgentProgram
from fwlab.dut.linux.agent_archive import agent_archive
from fwlab.host.ssh import Ssh
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.registry import KINDS

AGENT = "/run/fwlab-agent"
_ALONE = f"flock -o -w {CLEARING_UP_S} {AGENT}.lock"


def _program() -> AgentProgram:
    """The agent in a folder of its own, which is kept: Python takes longer to compile it than to run it.

    The folder has a file named by what was unpacked, made last: a folder without it is not whole.
    """
    packed = agent_archive()
    whole = f"{AGENT}/{hashlib.sha256(packed).hexdigest()}"
    compiled = f"python3 -S -m compileall -q {AGENT}"
    unpack = f"rm -rf {AGENT} && mkdir {AGENT} && tar -xzC {AGENT} && {compiled} && touch {whole}"
    save = f"{_ALONE} sh -c 'if [ -e {whole} ]; then cat >/dev/null; else {unpack}; fi'"
    return AgentProgram(packed, save, f"exec {_ALONE} python3 -Su {AGENT}")


class LinuxDut(AgentDut):
    """A DUT that runs Linux."""

    serving = ("net_rx_action", "net_tx_action")
    not_of_packets = ("swapper", "perf", "python3")  # the idle loop, the profiler and the agent
    marks = True
    can_be_paced = True

    def __init__(self, ssh: Ssh, devices: list[str]) -> None:
        super().__init__(ssh, devices, _program)

    def forget_states(self) -> bool:
        return self.ask("forget_states", Forgotten, timeout=120)["emptied"]

    def _given(self, file: RulesetFile) -> dict[str, str]:
        text = KINDS[file.kind].sent(file.text).encode()
        return {"name": file.name, "kind": file.kind, "packed": base64.b64encode(zlib.compress(text, 6)).decode()}

    def _reset_request(self, next_ruleset: list[RulesetFile] | None) -> dict[str, Any]:
        """What the next ruleset's packets will visit anyway."""
        if next_ruleset is None:
            return {}
        return {"next_tables": [hook for file in next_ruleset for hook in KINDS[file.kind].hooks(file.text)]}


class LinuxSystem:
    """Linux, as the registry of DUTs knows it."""

    name = "linux"
    forwarding = "net.ipv4.ip_forward"

    def connect(self, ssh: Ssh, devices: list[str]) -> LinuxDut:
        return LinuxDut(ssh, devices)
