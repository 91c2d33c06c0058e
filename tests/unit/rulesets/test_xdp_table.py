# SPDX-License-Identifier: GPL-2.0-or-later
"""*.xdp-table: which tables are accepted, and how their program is loaded and taken away."""

from __future__ import annotations

import errno
import os
import re
import struct

import pytest

from fwlab.dut.linux.agent.agent import Agent
from fwlab.model.errors import BadInput
from fwlab.rulesets.kind import Refusal
from fwlab.rulesets.kinds import bpf
from fwlab.rulesets.kinds.xdp_table import KIND, XdpTableLoader, name_of
from fwlab.rulesets.kinds.xdp_table_text import MAX_ASIDE, MAX_ENTRIES, MAX_LISTED, MAX_TABLES, tables_in
from fwlab.rulesets.registry import KINDS
from fwlab.rulesets.render import ruleset_file
from tests.fakes.fake_bpf import FakeBpf, load
from tests.fakes.fake_kernel import FakeKernel
from tests.unit.dut.test_agent import packed
from tests.unit.dut.test_agent_kinds import Started


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> FakeBpf:
    return FakeBpf(monkeypatch)


# ---- what is accepted -----------------------------------------------------------------------------------------

TABLES = {
    "one of each": "table eth0 list saddr,daddr,protocol,sport,dport pass\n"
    "198.18.1.0/24 198.19.0.1-198.19.0.9 udp 1-65535 53\n"
    "table eth0 hash saddr,dport drop\n198.18.1.1 53\n"
    "table eth1 lpm daddr drop\n198.19.0.0/16\n0.0.0.0/0\n"
    "table eth0 array protocol drop\nudp\nicmp-tcp\n255\n",
    "comments": "# nothing\n\n  table  eth0\tlist dport drop # here\n53 # DNS\n",
    "nothing": "# nothing\n",
    "as many tables as there may be": "table eth0 list dport drop\n1\n" * MAX_TABLES,
    "as many entries as a list may have": "table eth0 list dport drop\n" + "1\n" * MAX_LISTED,
    "as many entries of several fields": "table eth0 list dport,sport drop\n" + "1 1\n" * MAX_ASIDE,
    "as many entries as there may be": "table eth0 hash dport drop\n" + "1\n" * MAX_ENTRIES,
}
HEAD = "table eth0 {} drop\n"
REFUSED = [
    ("198.18.1.1\n", 1, "198.18.1.1 stands before the first table"),
    ("table eth2 list saddr drop\n1.1.1.1\n", 1, "eth2 is not one of the DUT's test links"),
    ("table eth0 tree saddr drop\n1.1.1.1\n", 1, "tree is not a data structure"),
    ("table eth0 list mark drop\n1\n", 1, "mark is not a field"),
    ("table eth0 list saddr, drop\n1.1.1.1\n", 1, "nothing is not a field"),
    ("table eth0 list saddr,saddr drop\n1.1.1.1 1.1.1.1\n", 1, "saddr,saddr names a field twice"),
    ("table eth0 list saddr redirect\n1.1.1.1\n", 1, "redirect is not a verdict"),
    ("table eth0 list saddr\n1.1.1.1\n", 1, "table eth0 list saddr is not a table"),
    ("table eth0 list saddr drop pinned\n1.1.1.1\n", 1, "table eth0 list saddr drop pinned is not a table"),
    ("table eth0 lpm dport drop\n1\n", 1, "an lpm cannot hold dport"),
    ("table eth0 lpm saddr,daddr drop\n1.1.1.1 1.1.1.1\n", 1, "an lpm cannot hold saddr,daddr"),
    ("table eth0 array saddr drop\n1.1.1.1\n", 1, "an array cannot hold saddr"),
    ("table eth0 list saddr drop\n\ntable eth0 list dport drop\n1\n", 1, "a table without an entry"),
    ("table eth0 list dport drop\n1\ntable eth0 list saddr drop\n", 3, "a table without an entry"),
    (HEAD.format("hash saddr") + "198.18.1.0/24\n", 2, "a hash holds single values, not 198.18.1.0/24"),
    (
        HEAD.format("lpm saddr") + "198.18.1.1-198.18.1.2\n",
        2,
        "an lpm holds prefixes, and 198.18.1.1-198.18.1.2 is none",
    ),
    (HEAD.format("list saddr,dport") + "198.18.1.1\n", 2, "198.18.1.1 is not one value for each of saddr,dport"),
    *(
        (HEAD.format(f"list {name}") + f"{word}\n", 2, f"{word} is not a value of {name}")
        for name, word in [
            *(("saddr", word) for word in ("198.18.1", "198.018.1.1", "0x1.1.1.1", "1.1.1.256", "1.1.1.1.", "::1")),
            *(("saddr", word) for word in ("198.18.1.1/24", "198.18.1.0/33", "198.18.1.0/", "198.18.1.0/-1", "1/8")),
            *(
                ("saddr", word)
                for word in ("1.1.1.2-1.1.1.1", "1.1.1.1-", "1.1.1.1-1.1.1.2-1.1.1.3", "eth0", "/etc/passwd")
            ),
            *(("dport", word) for word in ("65536", "-1", "053", "0x35", "9-1", "1-", "٥٣", "http", "1/8", "tcp")),
            *(("protocol", word) for word in ("256", "sctp", "udp-tcp")),
        ]
    ),
    ("table eth0 list dport drop\n1\n" * (MAX_TABLES + 1), 2 * MAX_TABLES + 1, f"more than {MAX_TABLES} tables"),
    (
        HEAD.format("list dport") + "1\n" * (MAX_LISTED + 1),
        MAX_LISTED + 2,
        f"more than {MAX_LISTED} entries in lists",
    ),
    (
        HEAD.format("list dport,sport") + "1 1\n" * (MAX_ASIDE + 1),
        MAX_ASIDE + 2,
        f"lists of several fields with more than {MAX_ASIDE} values before an entry's last: the kernel would refuse",
    ),
    (HEAD.format("hash dport") + "1\n" * (MAX_ENTRIES + 1), MAX_ENTRIES + 2, f"more than {MAX_ENTRIES} entries"),
]


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_tables_are_accepted(text: str) -> None:
    assert ruleset_file("x.xdp-table", text).kind == "xdp-table"


@pytest.mark.parametrize(("text", "line", "fault"), REFUSED, ids=[fault[:40] for _, _, fault in REFUSED])
def test_faults_are_named_with_their_line(text: str, line: int, fault: str) -> None:
    with pytest.raises(BadInput, match=rf"^x\.xdp-table:{line}: {re.escape(fault)}") as refused:
        ruleset_file("x.xdp-table", text)
    assert refused.value.hint
    with pytest.raises(Refusal, match=rf"^x\.xdp-table:{line}: {re.escape(fault)}"):  # on the DUT, too
        XdpTableLoader(FakeKernel()).calls("x.xdp-table", text, each=False)


# ---- loading and undoing --------------------------------------------------------------------------------------


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


def test_loading_one_by_one_is_refused() -> None:
    with pytest.raises(Refusal, match=r"x\.xdp-table: such a file can only be loaded whole"):
        XdpTableLoader(FakeKernel()).calls("x.xdp-table", HEAD.format("list saddr") + "1.1.1.1\n", each=True)


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


def test_it_is_loaded_after_the_other_filters() -> None:
    assert list(KINDS).index("xdp-filter") < list(KINDS).index(KIND.name) < list(KINDS).index("sysctl")
