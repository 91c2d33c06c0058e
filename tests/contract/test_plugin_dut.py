# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT operating system that is defined outside fwlab is found and connected to."""

from __future__ import annotations

from tests.contract import python

SCRIPT = """
from fwlab.dut.registry import DUTS, dut_system
from fwlab.model.errors import BadInput
print(*DUTS)
print(dut_system("toaster").connect(None, ["slot0", "slot1"]).facts()["kernel"])
try:
    dut_system("kettle")
except BadInput as error:
    print(error)
"""


def test_it_is_found_and_an_unknown_one_is_named() -> None:
    assert python(SCRIPT).stdout.splitlines() == [
        "freebsd linux toaster",
        "toast with slot0 and slot1",
        "topology.yml: no DUT runs kettle",
        "  next: use one of: freebsd linux toaster",
    ]
