# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames that the sink's stack would never see: each of these rulesets fails by the name of what it does."""

from __future__ import annotations

import pytest

from .conftest import LAB, Checkout, document
from .test_refused import hand_in

pytestmark = pytest.mark.live

EXERCISE = "ex1-one-host"


def chain(hook: str, device: str, statement: str) -> str:
    return f"""table netdev x {{
  chain c {{
    type filter hook {hook} device "{device}" priority 0; policy accept;
    ip saddr 198.18.20.66 drop
    ip saddr 198.18.10.0/27 {statement}
  }}
}}
"""


@pytest.mark.parametrize(
    ("ruleset", "words"),
    [
        (
            chain("egress", "eth1", "ether daddr set 02:00:00:00:00:01"),
            "sent to a MAC address that is not the next",
        ),
        (chain("egress", "eth1", "ip ttl set 200"), "sent on without being routed"),
        (chain("egress", "eth1", "ip dscp set 1"), "changed or made by the ruleset"),
    ],
    ids=["to nobody", "not as routed", "changed"],
)
def test_what_leaves_the_dut_must_be_what_came_in(lab: Checkout, ruleset: str, words: str) -> None:
    hand_in(lab, "x.nft", ruleset)
    done = lab.fwlab("check", LAB, EXERCISE, "--json")
    assert done.returncode == 1, done.stderr
    [exercise] = document(done)["exercises"]
    assert {check["outcome"] for check in exercise["checks"]} == {"fail"}
    assert all(words in check["text"] for check in exercise["checks"]), exercise["checks"]
