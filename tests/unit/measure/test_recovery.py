# SPDX-License-Identifier: GPL-2.0-or-later
"""Saving the DUT's state before the first untrusted ruleset, and restoring it."""

from functools import partial
from types import SimpleNamespace

import pytest

from fwlab.measure.recovery import Recovery
from fwlab.model.errors import CannotMeasure

GONE = CannotMeasure("virsh snapshot-revert x: no such domain", "vagrant up LAB")


class Machines:
    """A DUT, its SSH connection and its saved state at once. `done` lists what was asked of them, in order.

    left   what a reset leaves behind
    fails  what fails
    """

    def __init__(self, *, left: tuple[str, ...] = (), fails: tuple[str, ...] = (), sink: bool = True) -> None:
        self.left, self.fails, self.sink = list(left), fails, sink
        self.done: list[str] = []
        self.told: list[str] = []

    def recovery(self) -> Recovery:
        asked = {what: partial(self._do, what) for what in ("install", "close", "abandon", "open", "facts")}
        dut = SimpleNamespace(reset=lambda: self._do("reset") or self.left, **asked)
        ssh = SimpleNamespace(close=lambda: None)
        state = SimpleNamespace(**{what: partial(self._do, what) for what in ("take", "restore", "discard")})
        others = [SimpleNamespace(answers=lambda: self.sink)]
        return Recovery(dut, ssh, lambda: state, others, self.told.append)

    def _do(self, what: str) -> None:
        self.done.append(what)
        if what in self.fails:
            raise GONE


def test_the_state_is_saved_once_with_no_connection_open_and_restored() -> None:
    machines = Machines()
    recovery = machines.recovery()
    recovery.prepare()
    recovery.prepare()
    assert machines.done == ["reset", "close", "take", "open"]
    machines.done.clear()
    assert recovery.restore()
    assert machines.done == ["abandon", "restore", "open", "facts"]
    machines.done.clear()
    recovery.close()
    assert machines.done == ["discard"]


def test_a_dut_that_is_not_open_is_saved_before_it_is_opened() -> None:
    machines = Machines()
    recovery = machines.recovery()
    recovery.save()
    assert machines.done == ["take"]
    recovery.prepare()  # has nothing left to do
    assert machines.done == ["take"]
    assert recovery.restore()


def test_a_state_that_is_not_the_start_state_is_logged() -> None:
    machines = Machines(left=("sysctl net.ipv4.ip_forward is 0",))
    machines.recovery().prepare()
    assert machines.told == [
        "the DUT is not in its start state, and is saved as it is: sysctl net.ipv4.ip_forward is 0"
    ]


def test_without_a_saved_state_the_session_goes_on() -> None:
    machines = Machines(fails=("take",))
    recovery = machines.recovery()
    recovery.prepare()
    assert machines.done[-1] == "open"
    assert "will end the session: virsh snapshot-revert x: no such domain" in machines.told[0]
    assert not recovery.restore()
    machines.done.clear()
    assert recovery.reconnect()
    assert machines.done == ["abandon", "install", "open", "facts"], "the DUT may have booted, and lost the agent"
    recovery.close()
    assert "discard" not in machines.done


@pytest.mark.parametrize("machines", [Machines(fails=("restore",)), Machines(sink=False)])
def test_a_restore_counts_only_if_every_node_answers(machines: Machines) -> None:
    recovery = machines.recovery()
    recovery.prepare()
    assert not recovery.restore()
