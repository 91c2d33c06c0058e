# SPDX-License-Identifier: GPL-2.0-or-later
"""The way back when a ruleset has cost the session its DUT, or left on it what no reset takes away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from fwlab.dut.protocol import Dut
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure
from fwlab.testbed.saved_state import SavedState


class Recovery:
    """Saves the DUT in its start state before the first stranger's ruleset, and puts that state back.

    `saved` finds the machine; `others` are the connections to the nodes that have to answer as well.
    """

    def __init__(
        self,
        dut: Dut,
        ssh: Ssh,
        saved: Callable[[], SavedState],
        others: Iterable[Ssh],
        told: Callable[[str], None],
    ) -> None:
        self._dut, self._ssh, self._make, self._others, self._tell = dut, ssh, saved, list(others), told
        self._state: SavedState | None = None
        self._tried = False

    def prepare(self) -> None:
        """Once a session. Where the state cannot be saved that is told, and the session goes on without."""
        if self._tried:
            return
        self._tried = True
        self._dut.reset()
        # A connection inside the saved state would hang for ever in a machine that was put back.
        self._dut.close()
        self._ssh.close()
        try:
            state = self._make()
            state.take()
            self._state = state
        except CannotMeasure as error:
            self._tell(f"the DUT's state is not saved, so a ruleset that breaks it ends the session: {error.message}")
        self._dut.open()

    def restore(self) -> bool:
        """Put the saved state back; False where there is none, or where a node does not answer after it."""
        if self._state is None:
            return False
        self._tell("the DUT is put back into its saved state")
        self._dut.abandon()
        self._ssh.close()
        try:
            self._state.restore()
            self._dut.open()
            self._dut.facts()
        except CannotMeasure as error:
            self._tell(f"the DUT could not be put back: {error.message}")
            return False
        return all(ssh.answers() for ssh in self._others)

    def close(self) -> None:
        with contextlib.suppress(CannotMeasure):
            if self._state is not None:
                self._state.discard()
