# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.greylist files, a kind that a plug-in defines."""

from __future__ import annotations

from tests.contract.kinds import Samples

SAMPLES = [
    Samples(
        name="greylist",
        held="198.18.1.1\n",
        accepted=["198.18.1.1", "2001:2::1"],
        refused=[("198.18.1.1\n$(reboot)\n", "2: $(reboot) is not an address")],
        loaded=[("198.18.1.1\n", [("greylist load", "198.18.1.1\n")])],
        undone=[("greylist clear", None)],
        missing=[("1.1.1.1\n1.1.1.2\n", {"greylist list": "1.1.1.1\n"}, "1.1.1.2")],
    )
]
