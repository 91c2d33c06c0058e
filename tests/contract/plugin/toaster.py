# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT operating system from outside fwlab."""

from __future__ import annotations

from types import SimpleNamespace


class ToasterSystem:
    name = "toaster"
    forwarding = "toaster.forwards"

    def connect(self, ssh, devices):
        return SimpleNamespace(facts=lambda: {"kernel": f"toast with {' and '.join(devices)}"})


SYSTEM = ToasterSystem()
