# SPDX-License-Identifier: GPL-2.0-or-later
"""A new machine continues from the state in which one like it was saved, in another lab and another checkout, too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from fwlab.host.environment import cache_directory

from .conftest import ROOT, Checkout

pytestmark = pytest.mark.live

FIRST, SECOND = "lab04-nftables-sink", "lab05-drop-early-sink"
BOOT = "cat /proc/sys/kernel/random/boot_id"


@pytest.fixture
def another(lab: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A checkout with an SSH key of its own, without machines."""
    checkout = Checkout(tmp_path_factory.mktemp("saved") / "checkout")
    checkout.fill()
    shutil.copytree(ROOT / "labs", checkout.top / "labs")
    try:
        yield checkout
    finally:
        for name in (FIRST, SECOND):
            checkout.call("vagrant", "destroy", "-f", name)
        assert checkout.left_behind() == []


def boot_of(checkout: Checkout, machine: str) -> str:
    return checkout.vagrant("ssh", machine, "--no-tty", "-c", BOOT).strip()


def test_a_new_machine_continues_where_another_was_saved(lab: Checkout, another: Checkout) -> None:
    """A machine that boots has a boot id of its own; one that continues has that of the machine that was saved."""
    lab.run("sink", "true")  # of the same box: it was saved when it came up, or before
    assert list((cache_directory() / "saved").glob("sink-*.qcow2.zst"))
    said = another.vagrant("up", FIRST)
    assert "saved state cannot be used" not in said
    assert another.vagrant("ssh", FIRST, "--no-tty", "-c", "hostname").strip() == "sink"
    another.vagrant("up", SECOND)
    assert boot_of(another, FIRST) == boot_of(another, SECOND)
    keys = another.vagrant("ssh", SECOND, "--no-tty", "-c", "cat .ssh/authorized_keys").strip().splitlines()
    assert keys == [(another.top / ".fwlab/ssh/id_ed25519.pub").read_text().strip()], "the one checkout, nobody else"


def test_a_halted_machine_boots_with_what_it_had(another: Checkout) -> None:
    another.vagrant("up", FIRST)
    before = boot_of(another, FIRST)
    another.vagrant("ssh", FIRST, "--no-tty", "-c", "echo kept >mine && sync")
    another.vagrant("halt", FIRST)
    another.vagrant("up", FIRST)
    assert boot_of(another, FIRST) != before
    assert another.vagrant("ssh", FIRST, "--no-tty", "-c", "cat mine").strip() == "kept"
