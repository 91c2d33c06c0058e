# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that continue from a saved state (fwlab/machines/saved.py), with libvirt's tools in fakes.

The live tests use the real tools: tests/live/test_saved_machine.py.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.machines.saved import fingerprint
from fwlab.machines.seed import Seed, fingerprint_of
from tests.fakes.fake_libvirt import Bench, domain
from tests.fakes.machines_checkout import LAB, settings, small_checkout
from tests.fakes.programs import needs

pytestmark = needs("ssh-keygen")


def thorough(*values: str) -> list[Any]:
    return [pytest.param(value, marks=pytest.mark.thorough) for value in values]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


@pytest.fixture
def bench(checkout: Path) -> Bench:
    return Bench(checkout)


def key(xml: str, seed: str = "seed", box: str = "box-1", qemu: str = "QEMU 7.2.22") -> str:
    return fingerprint(xml, seed, box, qemu)


@pytest.mark.parametrize(
    ("xml", "fields", "same"),
    [
        ({"NAME": "fwlab-2-lab07-stateless", "UUID": "77aa", "DISK": "/images/two.img"}, {}, True),
        ({"EMULATOR": "/opt/qemu", "SSHPORT": "29999", "PORT": "51000", "LOCAL": "51001"}, {}, True),
        ({"MEMORY": "655360"}, {}, False),
        ({}, {"seed": "another network"}, False),
        ({}, {"box": "box-2"}, False),
        ({}, {"qemu": "QEMU 10.0.2"}, False),
    ],
)
def test_names_ports_and_paths_may_differ_and_nothing_else(
    xml: dict[str, str], fields: dict[str, str], same: bool
) -> None:
    assert (key(domain()) == key(domain(**xml), **fields)) is same


def test_the_checkouts_key_is_no_part_of_the_seed_that_counts(checkout: Path) -> None:
    with settings(checkout) as plan:
        machine = plan.machine(LAB)
        found = []
        for public_key in ("ssh-ed25519 AAAA one", "ssh-ed25519 BBBB other"):
            Seed(machine, public_key).write()
            found.append((fingerprint_of(machine), machine.seed.read_bytes()))
    (first, one), (second, other) = found
    assert first == second
    assert one != other


def test_a_machine_is_saved_and_the_next_continues(bench: Bench) -> None:
    state = bench.save()
    assert state.read_text() == "new disk"
    assert [path.stat().st_mode & 0o077 for path in (state, *bench.saved(".key"))] == [0, 0], "it lets its owner in"
    order = ["snapshot-create-as", "suspend", "zstd", "resume", "snapshot-delete"]
    found = [next(word for word in order if word in call) for call in bench.did if any(word in call for word in order)]
    assert found == order

    bench.disk.write_text("another new disk")
    assert bench.act("restore")["done"]
    assert bench.disk.read_text() == "new disk", "the saved one"
    assert any("rebase -u -F qcow2 -b /images/box.img" in call for call in bench.did)
    steps = [call.split()[4] for call in bench.did if "snapshot" in call]
    assert steps == ["snapshot-create", "snapshot-revert", "snapshot-delete"]
    assert any(call.startswith("ssh") and "authorized_keys" in call for call in bench.did), "this checkout is let in"


RESTORING = [
    *("snapshot-revert", "ssh"),
    *thorough("snapshot-create", "rebase", "zstd -dqf", "qemu-img info", "dumpxml"),
]


SLOWER = thorough("snapshot-create", "rebase", "zstd -dqf", "qemu-img info", "dumpxml")


@pytest.mark.parametrize("step", ["snapshot-revert", "ssh", *SLOWER])
def test_a_state_that_cannot_be_used_leaves_the_machine_as_it_was(bench: Bench, step: str) -> None:
    bench.save()
    bench.disk.write_text("another new disk")
    found = bench.act("restore", FAIL=step)
    assert not found["done"]
    assert "cannot be used, so it boots: " in found["warnings"][0]
    assert bench.disk.read_text() == "another new disk"
    assert not list(bench.root.glob("*.fresh"))
    assert any(" destroy " in call for call in bench.did)


def test_a_host_without_states_boots_silently_and_one_with_others_says_so(bench: Bench) -> None:
    assert bench.act("restore") == {"done": False, "warnings": []}
    state = bench.save()
    state.rename(state.with_name("dut-0123456789abcdef.qcow2.zst"))  # its key is that of another machine or QEMU
    said = "no saved state fits its box, NICs and this host's QEMU, so it boots, and is saved"
    assert bench.act("restore") == {"done": False, "warnings": [said]}
    assert not any("snapshot" in call for call in bench.did)


@pytest.mark.parametrize("damage", ["truncated", *thorough("altered", "no record", "no key")])
def test_a_damaged_state_is_removed(bench: Bench, damage: str) -> None:
    state = bench.save()
    record = state.with_name(state.name + ".json")
    match damage:
        case "truncated":
            state.write_text("new")
        case "altered":
            state.write_text("old disk")
        case "no record":
            record.write_text("")
        case "no key":
            bench.saved(".key")[0].unlink()
    found = bench.act("restore")
    assert not found["done"]
    assert "is damaged: removing it, and booting" in found["warnings"][0]
    assert not state.exists()
    assert not record.exists()


@pytest.mark.parametrize("step", ["suspend", *thorough("snapshot-create-as", "zstd -q -9", "ssh", "resume")])
def test_a_save_that_fails_keeps_nothing_and_says_so(bench: Bench, step: str) -> None:
    assert "its state was not saved" in bench.act("new", FAIL=step)["warnings"][0]
    assert bench.saved(".zst") == bench.saved(".key") == []
    assert list((bench.cache / "saved").glob("being-saved-*")) == []
    if step in ("suspend", "zstd -q -9"):
        assert any("resume" in call for call in bench.did), "the machine goes on"
        assert any("snapshot-delete" in call for call in bench.did)


def test_without_room_nothing_is_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert "0 MiB left" in bench.act("new")["warnings"][0]
    assert bench.saved(".zst") == []


def test_old_states_of_a_role_are_removed(bench: Bench) -> None:
    folder = bench.cache / "saved"
    folder.mkdir(parents=True)
    for age, name in enumerate(("dut-1", "dut-2", "sink-1")):
        for suffix in (".qcow2.zst", ".qcow2.zst.json", ".key"):
            (folder / (name + suffix)).write_text("")
        os.utime(folder / f"{name}.qcow2.zst", (age, age))
    bench.save()
    left = {path.name.split(".")[0] for path in bench.saved(".zst")}
    assert left & {"dut-1", "dut-2", "sink-1"} == {"dut-2", "sink-1"}
    assert not (folder / "dut-1.key").exists()
