# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the agent from its unpacked archive, as on a DUT, but on a fake kernel that touches nothing on this machine.

Arguments: the agent's folder; the path of the only tool that it runs. Run it with python3 -I -S, so that it cannot
import this project in any other way.
"""

import subprocess
import sys

folder, tool = sys.argv[1:]
sys.path.insert(0, folder)

from fwlab.dut.linux.agent import rpc  # noqa: E402
from fwlab.dut.linux.agent.agent import Agent  # noqa: E402
from fwlab.dut.linux.agent.kernel import Kernel  # noqa: E402
from fwlab.dut.linux.agent.start_state import StartState  # noqa: E402
from fwlab.model.registry import discover  # noqa: E402
from fwlab.rulesets.kind import RulesetKind  # noqa: E402


class NoDut(Kernel):
    def call(self, argv, text=None):
        if tool.endswith("/" + argv[0]):
            return super().call([tool, *argv[1:]], text)
        return subprocess.CompletedProcess(argv, 0, "", "")

    def read(self, path):
        raise FileNotFoundError(path)

    def write(self, path, text):
        pass

    def exists(self, path):
        return False

    def modules(self):
        return []

    def devices(self):
        return []

    def busy_clock(self):
        return 0.0


class Unchanged(StartState):
    def recorded(self):
        return {"modules": []}

    def restore(self, *, sysctls_changed, loaded):
        return []


kernel = NoDut()
kinds = discover("ruleset kind", "fwlab.rulesets.kinds", "KIND", None, RulesetKind)
rpc.main(Agent(kernel, kinds, Unchanged(kernel)))
