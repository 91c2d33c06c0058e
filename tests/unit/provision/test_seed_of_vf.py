# SPDX-License-Identifier: GPL-2.0-or-later
"""The seed of a machine whose links are virtual functions: it finds them by name and sets their MAC addresses."""

from pathlib import Path

import pytest
import yaml

from tests.fakes.machines_checkout import MACHINES, TOPOLOGY, seed_file, small_checkout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_checkout(tmp_path_factory.mktemp("vf") / "checkout")


def networks(checkout: Path, machine: str) -> dict[str, list[str]]:
    """The sections [Match] and [Link] of each link's file, by its name."""
    files = yaml.safe_load(seed_file(checkout, machine, "user-data"))["write_files"]
    found = {Path(one["path"]).name: one["content"].partition("[Network]")[0].split() for one in files}
    return {name: [line for line in lines if "=" in line] for name, lines in found.items() if name != "hosts"}


@pytest.mark.parametrize(("role", "machine"), MACHINES.items())
def test_a_machine_sets_the_address_of_a_virtual_function(checkout: Path, role: str, machine: str) -> None:
    """Not every physical function can do it. Where it has, the machine's address is the same."""
    ends = [(link.mtu, link.ends[role]) for link in TOPOLOGY.links.values() if role in link.ends]
    usual = networks(checkout, machine)
    topology = checkout / "topology.yml"
    text = topology.read_text()
    topology.write_text(text.replace("kind: socket", "kind: sriov"))
    handed = networks(checkout, machine)
    topology.write_text(text)
    for mtu, end in ends:
        name = f"10-fwlab-{end.dev}.network"
        assert usual[name] == [f"MACAddress={end.mac}", f"MTUBytes={mtu}"]
        assert handed[name] == [f"Name={end.dev}", f"MACAddress={end.mac}", f"MTUBytes={mtu}"]
    assert len(handed) == len(ends) + 1
