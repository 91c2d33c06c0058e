# SPDX-License-Identifier: GPL-2.0-or-later
"""A new machine continues from the state in which one like it was saved, in another lab and another checkout, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fwlab.host.environment import cache_directory

from .conftest import Checkout, new_checkout

pytestmark = pytest.mark.live

ROLE = "sink"
FIRST, SECOND = "lab04-nftables", "lab05-drop-early"
BOOT = "cat /proc/sys/kernel/random/boot_id"


class Another(Checkout):
    """Another checkout, with an SSH key of its own. Of its labs, only one machine each is up."""

    said = restored = ""

    def up(self, name: str) -> str:
        """What Vagrant said."""
        self.name = name
        return self.vagrant("up", f"{name}-{ROLE}")

    def on(self, name: str, command: str) -> str:
        """Run a command on the lab's machine."""
        self.name = name
        return self.run(ROLE, command).strip()


@pytest.fixture(scope="module")
def another(lab: Checkout) -> Iterator[Another]:
    """With FIRST's machine up. `said`: what Vagrant said; `restored`: the machine's boot id."""
    lab.run(ROLE, "true")  # of the same box: it was saved when it came up, or before
    with new_checkout(Another) as checkout:
        checkout.said = checkout.up(FIRST)
        checkout.restored = checkout.on(FIRST, BOOT)
        yield checkout


def test_a_new_machine_continues_where_another_was_saved(another: Another) -> None:
    """A machine that boots has a boot id of its own; one that continues has that of the machine that was saved."""
    assert list((cache_directory() / "saved").glob(f"{ROLE}-*.qcow2.zst"))
    assert "saved state cannot be used" not in another.said
    assert another.on(FIRST, "hostname") == ROLE
    another.up(SECOND)
    assert another.on(SECOND, BOOT) == another.restored
    keys = another.on(SECOND, "cat .ssh/authorized_keys").splitlines()
    assert keys == [(another.top / ".fwlab/ssh/id_ed25519.pub").read_text().strip()], "this checkout's, no other"


@pytest.mark.thorough
def test_after_halt_it_boots_with_its_own_disk(another: Another) -> None:
    another.on(FIRST, "echo kept >mine && sync")
    another.vagrant("halt", f"{FIRST}-{ROLE}")
    another.up(FIRST)
    assert another.on(FIRST, BOOT) != another.restored
    assert another.on(FIRST, "cat mine") == "kept"
