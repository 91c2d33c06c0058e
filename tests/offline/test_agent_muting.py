# SPDX-License-Identifier: GPL-2.0-or-later
"""Muting: the queue of the last link is a hole while states are counted up, and afterwards as it was."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from fwlab.dut.linux.agent import blackhole, start_state

KERNELS_OWN = [{"kind": "fq_codel", "handle": "0:", "root": True}, {"kind": "clsact", "handle": "ffff:"}]


class Tc:
    """Stands for tc on one device."""

    def __init__(self, queues: list[dict]) -> None:
        self.before, self.queues, self.changes = queues, queues, []

    def __call__(self, *argv: str) -> SimpleNamespace:
        if argv == ("tc", "-j", "qdisc", "show", "dev", "eth1"):
            return SimpleNamespace(stdout=json.dumps(self.queues) if self.queues else "")
        self.changes.append(" ".join(argv))
        added = argv[2] == "replace"
        self.queues = [{"kind": argv[-1], "handle": "8001:", "root": True}] if added else self.before
        return SimpleNamespace(stdout="", returncode=0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(start_state, "loaded_kinds", set())

    def on(queues: list[dict]) -> tuple[Tc, list[dict]]:
        tc = Tc(queues)
        monkeypatch.setattr(blackhole, "quiet", tc)
        answers = [blackhole.mute({"device": "eth1"})]
        if answers[0]["muted"]:  # the host asks no other
            answers.append(blackhole.unmute({"device": "eth1"}))
        return tc, answers

    return on


@pytest.mark.parametrize("queues", [KERNELS_OWN, []])
def test_nothing_leaves_until_the_kernels_own_queue_is_back(told, queues: list[dict]) -> None:
    tc, answers = told(queues)
    assert tc.changes == ["tc qdisc replace dev eth1 root blackhole", "tc qdisc del dev eth1 root"]
    assert answers == [{"muted": True}, {}]
    assert tc.queues == queues


def test_if_the_host_is_gone_meanwhile_the_way_back_knows_of_it(told) -> None:
    told(KERNELS_OWN)
    assert start_state.loaded_kinds == {"tc"}


def test_a_queue_that_a_ruleset_brought_stays(told) -> None:
    tc, answers = told([{"kind": "htb", "handle": "1:", "root": True}])
    assert (tc.changes, answers) == ([], [{"muted": False}])
