# SPDX-License-Identifier: GPL-2.0-or-later
"""What the agent counts for one metric alone: one module a count, found, not listed.

The metric asks for it by its name (`Dut.ask`) and declares the answer's type.
"""

from typing import Any, Protocol

from fwlab.dut.linux.agent.kernel import Kernel


class Count(Protocol):
    """A class that is made once for a session and answers requests. `name`: the operation's."""

    name: str

    def __init__(self, kernel: Kernel) -> None: ...

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the metric wants to know. An exception becomes the host's message."""
