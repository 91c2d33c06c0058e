# SPDX-License-Identifier: GPL-2.0-or-later
"""The blackhole queue: the last link's queue drops everything while states are counted, and is restored afterwards."""

import json
from subprocess import CompletedProcess
from typing import Any

import pytest

from fwlab.dut.linux.agent.agent import Agent
from fwlab.rulesets.registry import KINDS
from tests.fakes.fake_kernel import FakeKernel

DEFAULT = [{"kind": "fq_codel", "handle": "0:", "root": True}, {"kind": "clsact", "handle": "ffff:"}]


class Tc(FakeKernel):
    """Answers as tc does for one device."""

    def __init__(self, queues: list[dict[str, Any]]) -> None:
        super().__init__()
        self.before, self.queues, self.changes = queues, queues, list[str]()

    def call(self, argv: list[str], text: str | None = None) -> CompletedProcess[str]:
        if argv == ["tc", "-j", "qdisc", "show", "dev", "eth1"]:
            return CompletedProcess(argv, 0, json.dumps(self.queues) if self.queues else "", "")
        self.changes.append(" ".join(argv))
        replaced = argv[2] == "replace"
        self.queues = [{"kind": argv[-1], "handle": "8001:", "root": True}] if replaced else self.before
        return CompletedProcess(argv, 0, "", "")


def blackholed(queues: list[dict[str, Any]]) -> tuple[Tc, Agent, list[dict[str, Any]]]:
    tc = Tc(queues)
    agent = Agent(tc, KINDS)
    answers = [agent.blackhole({"device": "eth1"})]
    held = agent.holds_a_ruleset()
    assert held == answers[0]["added"], "what is added is removed however the session ends"
    if answers[0]["added"]:  # otherwise the host does not ask for its removal
        answers.append(agent.remove_blackhole({"device": "eth1"}))
    return tc, agent, answers


@pytest.mark.parametrize("queues", [DEFAULT, []])
def test_nothing_leaves_until_the_default_queue_is_restored(queues: list[dict[str, Any]]) -> None:
    tc, _, answers = blackholed(queues)
    assert tc.changes == ["tc qdisc replace dev eth1 root blackhole", "tc qdisc del dev eth1 root"]
    assert answers == [{"added": True}, {}]
    assert tc.queues == queues


def test_a_queue_of_a_ruleset_stays() -> None:
    tc, _, answers = blackholed([{"kind": "htb", "handle": "1:", "root": True}])
    assert (tc.changes, answers) == ([], [{"added": False}])
