# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent's end of the conversation with the host (fwlab.host.conversation)."""

import contextlib
import json
import select
import signal
import sys
import threading
from typing import NoReturn

from fwlab.dut.linux.agent.agent import Agent

#: How long the host may take to confirm that a ruleset has not cut it off.
CONFIRM_S = 15.0


class Gone(BaseException):
    """The host has closed the conversation."""


def main(agent: Agent, confirm_s: float = CONFIRM_S) -> None:
    """Answer requests until the host ends the conversation. A ruleset that is loaded then is undone."""
    with contextlib.suppress(Gone):
        signal.signal(signal.SIGHUP, _hang_up)
        arguments = (sys.stdin.fileno(), threading.main_thread().ident)
        threading.Thread(target=_watch, args=arguments, daemon=True).start()
        serve(agent, confirm_s)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if agent.holds_a_ruleset():
        agent.reset({})


def _watch(conversation: int, thread: int) -> None:
    """Interrupt `thread` as soon as the host is gone: what it measures or loads is no longer wanted, and would cost
    the next session's packets."""
    gone = select.poll()
    gone.register(conversation, 0)  # waits for the end alone, and reads nothing
    gone.poll()
    signal.pthread_kill(thread, signal.SIGHUP)


def _hang_up(*_: object) -> NoReturn:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise Gone


def serve(agent: Agent, confirm_s: float) -> None:
    """Each answer carries its operation (op) and the request's number."""
    operations = agent.operations()
    for line in sys.stdin:
        request = json.loads(line)
        agent.unconfirmed = False
        answer = {"op": request.get("op")}
        try:
            operation = operations.get(request["op"])
            answer |= {"unknown": True} if operation is None else operation(request)
        except Exception as error:  # noqa: BLE001 - the host turns it into a message; the agent lives on
            answer["failed"] = f"{type(error).__name__}: {error}"
        if "number" in request:  # the host may have stopped waiting for an earlier answer
            answer["number"] = request["number"]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        # A ruleset that drops everything drops this conversation too, so it is undone if the host stays silent. The
        # host may also be heard without hearing us: only a second word shows that our answer to the first has arrived.
        if agent.unconfirmed and not select.select([sys.stdin], [], [], confirm_s)[0]:
            agent.cut_off = True
            agent.reset({})
