# SPDX-License-Identifier: GPL-2.0-or-later
"""The entry point of the unpacked archive."""

from fwlab.dut.linux.agent.agent import Agent
from fwlab.dut.linux.agent.kernel import Kernel
from fwlab.dut.linux.agent.rpc import main
from fwlab.model.registry import discover
from fwlab.rulesets.kind import RulesetKind

# Kinds from entry points are packed into this package, so no entry point is looked up on the DUT.
main(Agent(Kernel(), discover("ruleset kind", "fwlab.rulesets.kinds", "KIND", None, RulesetKind)))
