# SPDX-License-Identifier: GPL-2.0-or-later
"""How a conversation with the DUT's agent ends, and what a ruleset that cuts it off comes to."""

from __future__ import annotations

import subprocess
import sys

import pytest

CONVERSATION = """
import sys, time
from fwlab.dut.linux.agent import rpc, start_state
def measure(_request):
    print("begun", file=sys.stderr, flush=True)
    time.sleep(60)
rpc.OPERATIONS["measure"] = measure
start_state.reset = lambda _request: print("undone", file=sys.stderr, flush=True)
start_state.loaded_kinds.update({kinds})
rpc.main()
"""


def conversation(kinds: set[str]) -> subprocess.Popen[str]:
    """An agent of which something of these kinds is loaded."""
    program = CONVERSATION.format(kinds=kinds or "()")
    return subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, stderr=-1, text=True)


@pytest.mark.parametrize(("kinds", "said"), [({"tc"}, "undone\n"), (set(), "")])
def test_a_host_that_takes_no_leave_has_its_ruleset_undone(kinds: set[str], said: str) -> None:
    agent = conversation(kinds)
    assert agent.communicate("", timeout=20)[1] == said
    assert agent.returncode == 0


def test_what_a_host_that_is_gone_was_waiting_for_is_broken_off() -> None:
    agent = conversation({"tc"})
    agent.stdin.write('{"op": "measure"}\n')
    agent.stdin.flush()
    assert agent.stderr.readline() == "begun\n"
    # It would sleep for a minute; a time-out is the failure.
    assert agent.communicate(timeout=20)[1] == "undone\n"
    assert agent.returncode == 0


CUT_OFF = """
import sys
from fwlab.dut.linux.agent import rpc, start_state
def load(_request):
    return {"seconds": []}
rpc.OPERATIONS["load"] = load
rpc.CONFIRM_S = 0.3
start_state.reset = lambda _request: print("undone", file=sys.stderr, flush=True)
rpc.main()
"""


def test_a_host_that_is_heard_and_hears_nothing_has_its_ruleset_undone() -> None:
    """A ruleset that drops what the DUT says: the host's first word arrives, and it waits for an answer in vain."""
    agent = subprocess.Popen([sys.executable, "-c", CUT_OFF], stdin=-1, stdout=-1, stderr=-1, text=True)

    def say(line: str) -> str:
        agent.stdin.write(line + "\n")
        agent.stdin.flush()
        return agent.stdout.readline()

    assert say('{"op": "load"}') == '{"seconds": []}\n'
    assert say('{"op": "confirm", "again": true}') == '{"reached": true}\n'
    assert agent.stderr.readline() == "undone\n", "no second word came"
    assert say('{"op": "confirm"}') == '{"reached": false}\n'
    agent.communicate(timeout=20)


def test_a_host_that_says_both_words_keeps_its_ruleset() -> None:
    program = CUT_OFF.replace("0.3", "30")
    agent = subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, stderr=-1, text=True)
    words = ['{"op": "load"}', '{"op": "confirm", "again": true}', '{"op": "confirm"}']
    answers = []
    for word in words:
        agent.stdin.write(word + "\n")
        agent.stdin.flush()
        answers.append(agent.stdout.readline())
    assert answers[1:] == ['{"reached": true}\n'] * 2
    assert agent.communicate(timeout=20)[1] == ""
