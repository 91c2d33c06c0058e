# SPDX-License-Identifier: GPL-2.0-or-later
"""How a conversation with the DUT's agent ends, what happens to a ruleset that cuts it off, and what answers say."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fwlab.dut.agent_protocol import Counters, Entries, Loaded
from fwlab.dut.conversation import AgentConversation, AgentProgram
from fwlab.dut.protocol import UnknownOperation
from fwlab.host import ssh as connections
from fwlab.model.errors import CannotMeasure, DutLost

#: An agent that touches nothing and reports its actions on standard error.
PROGRAM = """
import sys, time
from fwlab.dut.linux.agent import rpc
from fwlab.dut.linux.agent.agent import Agent
from fwlab.dut.linux.agent.kernel import Kernel

class Tried(Agent):
    def say(self, word):
        print(word, file=sys.stderr, flush=True)
    def measure(self, _request):
        self.say("begun")
        time.sleep(60)
    def load(self, _request):
        self.unconfirmed = True
        return {"seconds": []}
    def reset(self, _request):
        self.say("undone")
        return {}
    def holds_a_ruleset(self):
        return HOLDS

rpc.main(Tried(Kernel(), {}), CONFIRM_S)
"""


def agent(holds: bool = False, confirm_s: float = 30) -> subprocess.Popen[str]:
    program = PROGRAM.replace("HOLDS", str(holds)).replace("CONFIRM_S", str(confirm_s))
    return subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, stderr=-1, text=True)


def asked(process: subprocess.Popen[str], request: dict[str, Any]) -> Any:
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize(("holds", "said"), [(True, "undone\n"), (False, "")])
def test_a_ruleset_is_undone_when_the_host_disconnects_without_a_reset(holds: bool, said: str) -> None:
    process = agent(holds)
    assert process.communicate("", timeout=20)[1] == said
    assert process.returncode == 0


def test_a_measurement_ends_when_the_host_disconnects() -> None:
    process = agent(holds=True)
    process.stdin.write('{"op": "measure"}\n')
    process.stdin.flush()
    assert process.stderr.readline() == "begun\n"
    # It would sleep for a minute. A timeout here is the failure.
    assert process.communicate(timeout=20)[1] == "undone\n"
    assert process.returncode == 0


def test_a_ruleset_that_drops_the_answers_is_undone() -> None:
    """The host's first confirmation arrives, but its answer does not, so the host sends no second one."""
    process = agent(confirm_s=0.3)
    assert asked(process, {"op": "load"}) == {"op": "load", "seconds": []}
    assert asked(process, {"op": "confirm", "again": True}) == {"op": "confirm", "reached": True}
    assert process.stderr.readline() == "undone\n"
    assert asked(process, {"op": "confirm"}) == {"op": "confirm", "reached": False}
    assert asked(process, {"op": "confirm"}) == {"op": "confirm", "reached": True}, "it is reported once"
    process.communicate(timeout=20)


def test_a_ruleset_that_drops_everything_is_undone() -> None:
    process = agent(confirm_s=0.3)
    assert asked(process, {"op": "load"})["op"] == "load"
    assert process.stderr.readline() == "undone\n"
    process.communicate(timeout=20)


def test_a_ruleset_stays_after_both_confirmations() -> None:
    process = agent()
    answers = [asked(process, word) for word in ({"op": "load"}, {"op": "confirm", "again": True}, {"op": "confirm"})]
    assert [answer.get("reached") for answer in answers] == [None, True, True]
    assert process.communicate(timeout=20)[1] == ""


# ---- the host's end -------------------------------------------------------------------------------------------


class Ssh:
    """A DUT whose agent prints these answers to any request."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.printed = "".join(json.dumps(answer) + "\n" for answer in answers)
        self.ran: list[str] = []

    def run(self, command: str, **_: Any) -> str:
        self.ran.append(command)
        return ""

    def open(self, _command: str) -> subprocess.Popen[bytes]:
        script = f"import sys; print({self.printed!r}, end='', flush=True); sys.stdin.read()"
        return subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, stderr=-1)

    def lost(self, _words: str = "") -> CannotMeasure:
        return CannotMeasure("lost", "look")


@pytest.fixture
def talking() -> Iterator[Any]:
    opened: list[AgentConversation] = []

    def talk(*answers: dict[str, Any]) -> AgentConversation:
        agent = AgentProgram(b"", "save", "start")
        opened.append(AgentConversation(Ssh(list(answers)), lambda: agent))  # type: ignore[arg-type]
        opened[-1].open()
        return opened[-1]

    yield talk
    for one in opened:
        one.close()


def test_the_agent_is_saved_once() -> None:
    ssh = Ssh([])
    talk = AgentConversation(ssh, lambda: AgentProgram(b"", "save", "start"))  # type: ignore[arg-type]
    for _ in range(2):
        talk.open()
        talk.close()
    assert ssh.ran == ["save"]
    talk.install()
    assert ssh.ran == ["save", "save"], "a DUT that booted has lost it"


def test_an_answer_is_recognised_by_its_number_and_operation(talking: Any) -> None:
    late, wanted = {"op": "measure", "number": 0, "valid": []}, {"op": "entries", "number": 1, "entries": {"nft": 3}}
    assert talking(late, wanted).ask("entries", Entries, timeout=20) == {"entries": {"nft": 3}}
    with pytest.raises(CannotMeasure, match="the answer to load was one to measure"):
        talking({"op": "measure", "number": 1, "seconds": []}).ask("load", Loaded, timeout=20)


def test_a_failed_operation_and_an_agent_that_ended_are_reported(talking: Any) -> None:
    talk = talking({"op": "drain", "number": 1, "failed": "KeyError: 'x'"})
    with pytest.raises(CannotMeasure, match="dut: KeyError") as raised:
        talk.ask("drain", Counters, timeout=20)
    assert not isinstance(raised.value, DutLost), "an agent that answers lives"
    with pytest.raises(UnknownOperation, match="its agent does not know drain"):
        talking({"op": "drain", "number": 1, "unknown": True}).ask("drain", Counters, timeout=20)
    talk.close()
    with pytest.raises(CannotMeasure, match="lost"):
        talk.ask("drain", Counters, timeout=20)


def test_a_dut_that_does_not_answer_is_lost(talking: Any) -> None:
    with pytest.raises(DutLost, match="no answer within"):
        talking().ask("drain", Counters, timeout=0.1)


@pytest.mark.parametrize(("role", "lost"), [("dut", True), ("generator", False), ("sink", False)])
def test_a_ruleset_cannot_be_blamed_for_another_nodes_connection(role: str, lost: bool) -> None:
    assert isinstance(connections.Ssh(Path("none"), role).lost(), DutLost) == lost
