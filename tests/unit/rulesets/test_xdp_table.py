# SPDX-License-Identifier: GPL-2.0-or-later
"""*.xdp-table: which tables are accepted, and how their program is loaded and taken away."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from fwlab.dut.linux.agent.agent import Agent
from fwlab.rulesets.kind import Refusal
from fwlab.rulesets.kinds import bpf
from fwlab.rulesets.kinds.xdp_table import XdpTableLoader, name_of
from fwlab.rulesets.kinds.xdp_table_text import tables_in
from fwlab.rulesets.registry import KINDS
from tests.contract.kinds.xdp_table import TABLES
from tests.fakes.fake_bpf import FakeBpf, load
from tests.fakes.fake_kernel import FakeKernel
from tests.unit.dut.test_agent import packed
from tests.unit.dut.test_agent_kinds import Started


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> FakeBpf:
    return FakeBpf(monkeypatch)


HEAD = "table eth0 {} drop\n"


def test_faults_are_named_on_the_dut_too() -> None:
    with pytest.raises(Refusal, match=r"^x\.xdp-table:1: mark is not a field; use some of: "):
        XdpTableLoader(FakeKernel()).calls("x.xdp-table", "table eth0 list mark drop\n1\n", each=False)


def test_each_device_has_one_program_that_goes_with_a_reset(kernel: FakeBpf) -> None:
    loader = load(TABLES["one of each"])
    assert sorted(device for _, device in kernel.attached.values()) == [0, 1]
    assert loader.entries() == 7
    links = set(kernel.attached)
    loader.undo(True)
    assert set(kernel.closed) == links | set(kernel.code) | set(kernel.kinds)
    assert kernel.closed[0] in links, "no packet may run the program while its maps go"
    assert loader.entries() == 0
    kernel.closed.clear()
    loader.undo(True)
    assert kernel.closed == []


def test_a_second_program_on_a_device_is_refused_and_leaves_nothing(kernel: FakeBpf) -> None:
    agent = Agent(FakeKernel(), KINDS, Started(FakeKernel()))
    text = HEAD.format("hash saddr") + "198.18.1.1\n"
    files = [packed(text, "xdp-table"), packed(text, "xdp-table") | {"name": "b.xdp-table"}]
    said = "b.xdp-table: the kernel did not accept the program for eth0: there is an XDP program already"
    assert agent.load({"files": files}) == {"refused": said}
    assert set(kernel.closed) == set(kernel.attached) | set(kernel.code) | set(kernel.kinds)
    assert "seconds" in agent.load({"files": files[:1]})


def test_the_reason_of_the_kernel_is_passed_on(kernel: FakeBpf, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_code: bytes, _name: str) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(bpf, "load_xdp", refuse)
    with pytest.raises(
        Refusal, match=r"x\.xdp-table: the kernel did not accept the program for eth0: Invalid argument"
    ):
        load(HEAD.format("lpm saddr") + "198.18.1.1\n")


def test_the_programs_name_tells_tables_apart(kernel: FakeBpf) -> None:
    texts = [
        HEAD.format("hash saddr") + "198.18.1.1\n",
        HEAD.format("list saddr") + "198.18.1.1\n",
        "# x\n" + TABLES["comments"],
    ]
    assert len({name_of(tables_in(text.split("\n"))) for text in texts}) == 3
    load(texts[0])
    assert kernel.names == [name_of(tables_in(texts[0].split("\n")))]


def test_the_system_call_is_given_what_linux_bpf_h_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and places of the fields of union bpf_attr."""
    given: list[tuple[int, bytes]] = []

    def call(command: int, attributes: bytes) -> int:
        given.append((command, attributes))
        return 9

    monkeypatch.setattr(bpf, "call", call)
    assert bpf.new_map(bpf.HASH, 8, 4, 100, bpf.ZERO_SEED) == 9
    bpf.fill(9, bytes(16), bytes(8), 2)
    assert bpf.load_xdp(bytes(24), "fwlab_x") == 9
    assert bpf.attach_xdp(9, 2) == 9
    assert [command for command, _ in given] == [0, 26, 5, 28]
    assert given[0][1] == struct.pack("<5I", 1, 8, 4, 100, 64)
    assert given[1][1][32:] == struct.pack("<IIQQ", 2, 9, 0, 0)
    assert given[2][1][:8] == struct.pack("<II", 6, 3)
    assert given[2][1][48:64] == b"fwlab_x".ljust(16, b"\0")
    assert given[2][1][68:] == struct.pack("<I", 37)
    assert given[3][1] == struct.pack("<4I", 9, 2, 37, 4)


def test_an_error_of_the_system_call_is_raised() -> None:
    with pytest.raises(OSError, match=r"\[Errno 22\]|\[Errno 1\]|\[Errno 38\]"):
        bpf.call(-1 & 0xFFFF, bytes(16))
