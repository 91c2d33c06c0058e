# SPDX-License-Identifier: GPL-2.0-or-later
"""A checkout takes other ports where its own are taken, and keeps them while it has machines."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.host import ports
from fwlab.model.errors import BadInput
from fwlab.model.port_numbers import lab_ports
from tests import ROOT
from tests.checkout import TOPOLOGY

ADDRESS = "127.0.0.1"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FWLAB_PORT_OFFSET", raising=False)


@pytest.fixture(params=[socket.SOCK_STREAM, socket.SOCK_DGRAM])
def taken(request: pytest.FixtureRequest) -> Iterator[int]:
    """A port that another program has, low enough to be shifted."""
    with socket.socket(type=request.param) as other:
        port = next(port for port in range(21_000, 22_000) if _bound(other, port))
        if request.param == socket.SOCK_STREAM:
            other.listen()
        yield port


def _bound(other: socket.socket, port: int) -> bool:
    try:
        other.bind((ADDRESS, port))
    except OSError:
        return False
    return True


def settled(checkout: Path, port: int) -> int:
    return ports.settle_ports(checkout, ADDRESS, [port])


def test_others_are_chosen_once_where_a_port_is_taken(tmp_path: Path, taken: int) -> None:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        free = probe.getsockname()[1]
    assert settled(tmp_path, free) == 0
    assert not (tmp_path / ".fwlab").exists()
    shift = settled(tmp_path, taken)
    assert ports.FIRST <= shift < ports.LAST
    assert settled(tmp_path, taken) == shift


@pytest.mark.parametrize("shift", [ports.FIRST, ports.LAST])
def test_what_is_chosen_is_neither_privileged_nor_ephemeral(shift: int) -> None:
    base = TOPOLOGY.ports
    numbers = lab_ports(base.ssh_base, base.link_base, base.per_lab, ["lab01-first", "lab99-last"])
    assert min(numbers) + shift >= 1024
    assert max(numbers) + shift < 32768


@pytest.mark.parametrize("sign", [".vagrant/machines/lab03-ipset/libvirt/id", ".fwlab/lab03-ipset/machines.json"])
def test_a_checkout_with_machines_keeps_its_ports(tmp_path: Path, taken: int, sign: str) -> None:
    (tmp_path / sign).parent.mkdir(parents=True)
    (tmp_path / sign).touch()
    assert settled(tmp_path, taken) == 0


def test_the_variable_decides(tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_PORT_OFFSET", "100")
    assert settled(tmp_path, taken) == 0
    assert load_topology(Project(ROOT)).ssh_port(3, "dut") == 22131


@pytest.mark.parametrize("offset", ["70000", "-25000", "abc"])
def test_a_shift_that_gives_no_ports_is_refused(offset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_PORT_OFFSET", offset)
    with pytest.raises(BadInput, match="whole number from"):
        settled(tmp_path, 22000)


def test_what_was_chosen_shifts_every_port(tmp_path: Path) -> None:
    shutil.copy(ROOT / "topology.yml", tmp_path)
    (tmp_path / ".fwlab").mkdir()
    (tmp_path / ".fwlab/ports").write_text("12000\n")
    topology = load_topology(Project(tmp_path))
    assert topology.ssh_port(3, "dut") == 34031
    assert topology.link_port(3, "generator-dut", "dut") == 36031
