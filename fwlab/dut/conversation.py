# SPDX-License-Identifier: GPL-2.0-or-later
"""The conversation with the agent on a DUT: it is saved and started there over SSH, and answers within a time."""

import contextlib
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from fwlab.dut.protocol import UnknownOperation
from fwlab.host.conversation import Conversation, Ended
from fwlab.host.environment import timeout_scale
from fwlab.host.ssh import Ssh
from fwlab.model.declared import first_fault
from fwlab.model.errors import CannotMeasure, DeadlineExceeded, DutLost, Hindered

T = TypeVar("T")

#: How long the agent of an interrupted session may take to stop and restore the start state (s).
CLEARING_UP_S = 60


@dataclass(frozen=True)
class AgentProgram:
    """The agent of one operating system, and the shell commands that save and start it there.

    packed  the program
    save    reads the program from standard input; it need not save one that is there already
    start   runs it; the conversation is its standard input and output. It ends once the start state is restored.

    Both wait up to CLEARING_UP_S for the agent of an interrupted session: there is one agent at a time.
    """

    packed: bytes
    save: str
    start: str


class AgentConversation:
    """Can be opened again after it was closed. If the DUT does not answer, its methods raise CannotMeasure."""

    def __init__(self, ssh: Ssh, agent: Callable[[], AgentProgram]) -> None:
        self._ssh = ssh
        self._agent_made = agent
        self._conversation: Conversation | None = None
        self._installed = False
        self._asked = (0, "")
        self._limit_s = 0.0
        self._deadline: float | None = None

    @cached_property
    def _agent(self) -> AgentProgram:
        return self._agent_made()

    def install(self) -> None:
        """Save the agent on the DUT. Afterwards no agent runs there."""
        self._ssh.run(self._agent.save, data=self._agent.packed, timeout=CLEARING_UP_S + 60)
        self._installed = True

    def open(self) -> None:
        """Start the agent on the DUT. It is saved there first if this conversation has not done so yet."""
        if not self._installed:
            self.install()
        self._conversation = Conversation(self._ssh.open(self._agent.start))

    def close(self) -> None:
        """End the conversation, and wait until the agent has restored the start state."""
        if self._conversation is not None:
            self._conversation.close(CLEARING_UP_S * timeout_scale())
            self._conversation = None

    def abandon(self) -> None:
        """End the conversation at once, without waiting for the agent."""
        if self._conversation is not None:
            self._conversation.kill()
            self._conversation = None

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """In this context all answers must arrive within `seconds` from now. Otherwise they raise DeadlineExceeded."""
        self._limit_s, self._deadline = seconds, time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = None

    def ask(self, operation: str, answer: type[T], *, timeout: float, **fields: Any) -> T:
        """The answer to this request, of the type that the operation has, within `timeout` seconds."""
        self.send(operation, **fields)
        return self.receive(answer, timeout)

    def send(self, operation: str, **fields: Any) -> None:
        """Send a request and wait for nothing. Raises CannotMeasure if the connection is lost."""
        try:
            self._asked = self._opened().send(operation, **fields), operation
        except Ended as error:
            raise self._ssh.lost() from error

    def receive(self, wanted: type[T], timeout: float) -> T:
        """The answer to the last request. `timeout` is extended on a slow host (see timeout_scale)."""
        timeout *= timeout_scale()
        left = timeout if self._deadline is None else self._deadline - time.monotonic()
        number, asked = self._asked
        try:
            answer, _ = self._opened().receive(number, max(0.0, min(timeout, left)))
        except Ended as error:
            raise self._ssh.lost() from error
        except TimeoutError as error:
            if left < timeout:
                message = f"dut: the measurement took more than {self._limit_s:g} s"
                raise DeadlineExceeded(message, "try the ruleset by itself: fwlab check LAB EXERCISE") from error
            raise DutLost(f"dut: no answer within {timeout:g} s", "fwlab doctor") from error
        operation = answer.pop("op", None)
        if "unknown" in answer:
            raise UnknownOperation(f"dut: its agent does not know {asked}", "measure it on another system")
        if "failed" in answer:
            # Not DutLost: an agent that answers lives, and what it lacks, such as packets, may be anybody's fault.
            raise Hindered(f"dut: {answer['failed']}", "vagrant reload LAB")
        if operation != asked:
            raise CannotMeasure(f"dut: the answer to {asked} was one to {operation}", "vagrant reload LAB")
        return validated(answer, wanted, asked)

    def _opened(self) -> Conversation:
        if self._conversation is None:
            raise self._ssh.lost()
        return self._conversation


@cache
def _adapter(wanted: Any) -> TypeAdapter[Any]:
    return TypeAdapter(wanted)  # to make one takes longer than to validate most answers


def validated(answer: dict[str, Any], wanted: type[T], operation: str) -> T:
    """The answer if it is of the type that is wanted. Raises CannotMeasure."""
    try:
        found: T = _adapter(cast("Hashable", wanted)).validate_python(answer)
    except ValidationError as error:
        message = f"dut: the answer to {operation} is wrong at {first_fault(error)}"
        raise CannotMeasure(message, "vagrant reload LAB") from error
    return found
