# SPDX-License-Identifier: GPL-2.0-or-later
"""Restore the DUT after a ruleset that crashed it, or that left something no reset removes."""

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from fwlab.dut.protocol import Dut
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure
from fwlab.testbed.qemu_process import Snapshot


class Recovery:
    """Saves the DUT's start state before the first untrusted ruleset, and restores it on request.

    saved   finds the DUT's virtual machine
    others  connections to the other nodes, which must still answer after a restore
    """

    def __init__(
        self,
        dut: Dut,
        ssh: Ssh,
        saved: Callable[[], Snapshot],
        others: Iterable[Ssh],
        log: Callable[[str], None],
    ) -> None:
        self._dut, self._ssh, self._make, self._others, self._log = dut, ssh, saved, list(others), log
        self._state: Snapshot | None = None
        self._tried = False

    def prepare(self) -> None:
        """Save the state, once per session. If that fails, say so; the session goes on without it."""
        if self._tried:
            return
        left = self._dut.reset()
        if left:
            self._log(f"the DUT is not in its start state, and is saved as it is: {'; '.join(left)}")
        self._dut.close()
        self.save()
        self._dut.open()

    def save(self) -> None:
        """Like `prepare`, while no agent runs: it need not be ended and started again."""
        self._tried = True
        # A connection that is open in the saved state would hang forever in the restored machine.
        self._ssh.close()
        try:
            state = self._make()
            state.take()
            self._state = state
        except CannotMeasure as error:
            self._log(f"cannot save the DUT's state; a ruleset that crashes it will end the session: {error.message}")

    def restore(self) -> bool:
        """Restore the saved state. False if there is none, or if a node does not answer afterwards."""
        if self._state is None:
            return False
        self._log("restoring the DUT's saved state")
        self._dut.abandon()
        self._ssh.close()
        try:
            self._state.restore()
            return self._answers()
        except CannotMeasure as error:
            self._log(f"cannot restore the DUT: {error.message}")
            return False

    def reconnect(self) -> bool:
        """Whether every node answers a new connection. What failed may then be tried again."""
        self._dut.abandon()
        self._ssh.close()
        try:
            self._dut.install()  # a DUT that booted meanwhile does not have it any more
            return self._answers()
        except CannotMeasure:
            return False

    def _answers(self) -> bool:
        """Open a new connection to the DUT; returns whether the other nodes answer, too. Raises CannotMeasure."""
        with ThreadPoolExecutor() as pool:
            answers = [pool.submit(ssh.answers) for ssh in self._others]
            self._dut.open()
            self._dut.facts()
            return all(answer.result() for answer in answers)

    def close(self) -> None:
        """Discard the saved state, which takes disk space."""
        with contextlib.suppress(CannotMeasure):
            if self._state is not None:
                self._state.discard()
