# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT operating system from outside fwlab."""

from __future__ import annotations

from types import SimpleNamespace

from fwlab.dut.system import DutSystem


class ToasterSystem(DutSystem):
    name = "toaster"
    forwarding = "toaster.forwards"
    guest = "toaster"
    shell = "crumb"
    seed = ("bread",)

    def connect(self, ssh, devices):
        return SimpleNamespace(facts=lambda: {"kernel": f"toast with {' and '.join(devices)}"})


SYSTEM = ToasterSystem()
