# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of pf.conf files."""

from __future__ import annotations

from tests.contract.kinds import Samples
from tests.corpus import pf_rulesets


def pf(status: str = "Enabled", rules: str = "", tables: str = "") -> dict[str, str]:
    info = f"Status: {status} for 0 days 00:00:07             Debug: Urgent\n"
    return {"pfctl -s info": info, "pfctl -s rules": rules, "pfctl -s Tables": tables}


PF_NONE = "set ruleset-optimization none\n"
MACROS = 'if = "vtnet1"\nboth = "{ vtnet0" $if "}"\npass on $both from $nothing any\n'
OUTSIDE = "is not one of the DUT's test links"
SAMPLES = [
    Samples(
        name="pf",
        held="block all\n",
        accepted=[
            *pf_rulesets().values(),
            "set skip on lo\nantispoof quick for lo\npass on { vtnet0 lo lo0 }\n",
            MACROS,
        ],
        refused=[
            ("pass on lo1\n", f"1: lo1 {OUTSIDE}"),
            (MACROS.replace("vtnet1", "vtnet2"), f"3: vtnet2 {OUTSIDE}"),
            ('m = "' + "a " * 30_000 + '"\n' + "pass from $m\n" * 10, "10: macros that expand to more than 512 KiB"),
        ],
        missing=[
            ("block all\n", pf("Disabled"), "any of it: pf is off"),
            ("block all\n", pf(rules="block drop all\n"), None),
            ("block all\npass\n", pf(), "2 of 2 rules"),
            ("block all\npass\n", pf(rules="block drop all\n"), None),
            (f"{PF_NONE}block all\npass\n", pf(rules="block drop all\n"), "1 of 2 rules"),
            ("table <a> persist { 1.1.1.1 }\ntable <b> { 1.1.1.2 }\n", pf(tables="a\n"), None),
            ("t = bad\ntable <a> persist\ntable <$t> persist\n", pf(tables="a\n"), "tables bad"),
            ("set skip on lo0\n# block all\n", pf(), None),
        ],
    )
]
