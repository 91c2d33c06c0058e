# SPDX-License-Identifier: GPL-2.0-or-later
"""A new machine continues from the state in which one like it was saved, in another lab and another checkout, too."""

from __future__ import annotations

import pytest

from fwlab.host.environment import cache_directory

from .conftest import Checkout, new_checkout

pytestmark = pytest.mark.live

ROLE = "sink"
FIRST, SECOND = "lab04-nftables", "lab05-drop-early"
BOOT = "cat /proc/sys/kernel/random/boot_id"


def test_a_new_machine_continues_where_another_was_saved_and_boots_after_halt(lab: Checkout) -> None:
    """A machine that boots has a boot id of its own; one that continues has that of the machine that was saved."""
    lab.run(ROLE, "true")  # of the same box: it was saved when it came up, or before
    assert list((cache_directory() / "saved").glob(f"{ROLE}-*.qcow2.zst"))
    with new_checkout() as another:  # with an SSH key of its own

        def up(name: str) -> str:
            """What Vagrant said."""
            another.name = name
            return another.vagrant("up", f"{name}-{ROLE}")

        def run(command: str) -> str:
            """On the machine of the last `up`."""
            return another.run(ROLE, command).strip()

        assert "saved state cannot be used" not in up(FIRST)
        assert run("hostname") == ROLE
        restored = run(BOOT)
        run("echo kept >mine && sync")
        up(SECOND)
        assert run(BOOT) == restored
        keys = run("cat .ssh/authorized_keys").splitlines()
        assert keys == [(another.top / ".fwlab/ssh/id_ed25519.pub").read_text().strip()], "this checkout's, no other"
        another.vagrant("halt", f"{FIRST}-{ROLE}")
        up(FIRST)
        assert run(BOOT) != restored
        assert run("cat mine") == "kept"
