# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in with a testbed and a link kind, as another package would define them. See test_testbed_plugin.py."""

from __future__ import annotations

from fwlab.testbed.link_kinds import Requirement
from fwlab.testbed.throttle import Level, Levels


class Slow:
    """Emulated at 32 ns per instruction. Its figures hold on every host."""

    name = "slow_motion"
    clock = "instructions"
    throttle = Levels((Level(1.0, 0.001), Level(0.5, 0.001)), (Level(0.5, 0.001), Level(0.25, 0.001)))
    default = False
    savable = False
    max_cpus = 1

    def accelerator(self, _kvm):
        return "tcg", "it always emulates"

    def dut_accelerator(self, _usual):
        return "tcg"

    def dut_arguments(self, _topology):
        return ["-icount", "shift=5,sleep=on"]

    def matches(self, accelerator, icount_shift):
        return accelerator == "tcg" and icount_shift == 5

    def ranges(self, _accelerator):
        return "portable"

    def note(self, _accelerator):
        return "measured in slow motion"


class Pigeon:
    name = "pigeon"
    summary = "IP over avian carriers (RFC 1149)"
    netdevs = ("avian",)
    interface = "avian"
    savable = False
    qemu_arguments = ()

    def network(self, end):
        return "avian", {"from": end.address, "mac": end.near["mac"]}

    def ports(self, _end):
        return []

    def host_device(self, _end):
        return None

    def handed_over(self, _end):
        return None

    def requirements(self, kernels):
        return (Requirement("no pigeon at home", met=False, next="open the window"),)


testbed = Slow()
link = Pigeon()
