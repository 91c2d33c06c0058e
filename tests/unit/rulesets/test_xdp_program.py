# SPDX-License-Identifier: GPL-2.0-or-later
"""What the generated XDP program says of known frames, and what it is made of."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import ip_address
from random import Random

import pytest

from fwlab.rulesets.kinds.xdp_table import program
from fwlab.rulesets.kinds.xdp_table_text import tables_in
from tests.fakes.fake_bpf import FakeBpf, load

DROP, PASS = 1, 2
UDP, TCP, ICMP = 17, 6, 1


def frame(
    saddr: str = "198.18.1.1",
    daddr: str = "198.19.1.1",
    protocol: int = UDP,
    ports: tuple[int, int] = (1025, 5000),
    options: int = 0,
    fragment: int = 0,
    ethertype: int = 0x0800,
) -> bytes:
    ip = struct.pack(
        ">BBHHHBBH4s4s",
        *(0x45 + options, 0, 64, 0, fragment, 64, protocol, 0),
        *(ip_address(address).packed for address in (saddr, daddr)),
    )
    return bytes(12) + struct.pack(">H", ethertype) + ip + bytes(4 * options) + struct.pack(">HH", *ports) + bytes(8)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> FakeBpf:
    return FakeBpf(monkeypatch)


HEAD = "table eth0 {} drop\n"
VERDICTS: list[tuple[str, dict[str, object], int]] = [
    (HEAD.format("list saddr") + "198.18.1.1\n", {}, DROP),
    (HEAD.format("list saddr") + "198.18.1.1\n", {"saddr": "198.18.1.2"}, PASS),
    (HEAD.format("list saddr") + "198.18.1.1\n", {"ethertype": 0x0806}, PASS),
    (HEAD.format("list saddr") + "198.18.1.1\n", {"protocol": 47}, DROP),
    (HEAD.format("list daddr") + "198.19.1.0/24\n", {"daddr": "198.19.1.255"}, DROP),
    (HEAD.format("list daddr") + "198.19.1.0/24\n", {"daddr": "198.19.2.0"}, PASS),
    (HEAD.format("list daddr") + "0.0.0.0/0\n", {}, DROP),
    (HEAD.format("list saddr") + "198.18.1.1-198.18.1.5\n", {"saddr": "198.18.1.5"}, DROP),
    (HEAD.format("list saddr") + "198.18.1.1-198.18.1.5\n", {"saddr": "198.18.1.6"}, PASS),
    (HEAD.format("list saddr") + "198.18.1.1-198.18.1.5\n", {"saddr": "198.18.1.0"}, PASS),
    (HEAD.format("list protocol") + "tcp\nicmp\n", {"protocol": ICMP}, DROP),
    (HEAD.format("list dport") + "5000\n", {}, DROP),
    (HEAD.format("list dport") + "5000\n", {"options": 10}, DROP),
    (HEAD.format("list sport") + "1000-1100\n", {}, DROP),
    (HEAD.format("list dport") + "0-65535\n", {"protocol": ICMP}, PASS),
    (HEAD.format("list dport") + "0-65535\n", {"protocol": TCP}, DROP),
    (HEAD.format("list dport") + "0-65535\n", {"fragment": 0x2000}, DROP),  # the first of several
    (HEAD.format("list dport") + "0-65535\n", {"fragment": 0x2001}, PASS),
    (HEAD.format("list saddr,dport") + "198.18.1.1 53\n198.18.1.1 5000\n", {}, DROP),
    (HEAD.format("list saddr,dport") + "198.18.1.1 53\n198.18.1.2 5000\n", {}, PASS),
    (HEAD.format("hash saddr,dport") + "198.18.1.1 5000\n", {}, DROP),
    (HEAD.format("hash dport,saddr") + "5000 198.18.1.1\n", {}, DROP),
    (HEAD.format("hash saddr,dport") + "198.18.1.1 5000\n", {"ports": (5000, 1025)}, PASS),
    (HEAD.format("hash saddr,daddr,protocol,sport,dport") + "198.18.1.1 198.19.1.1 udp 1025 5000\n", {}, DROP),
    (HEAD.format("lpm saddr") + "198.18.0.0/23\n", {}, DROP),
    (HEAD.format("lpm saddr") + "198.18.0.0/24\n198.18.1.1\n", {"saddr": "198.18.1.2"}, PASS),
    (HEAD.format("lpm daddr") + "0.0.0.0/0\n", {}, DROP),
    (HEAD.format("array dport") + "4999-5001\n53\n", {}, DROP),
    (HEAD.format("array dport") + "4999\n5001\n", {}, PASS),
    (HEAD.format("array dport") + "0-65535\n", {"protocol": ICMP}, PASS),
    (HEAD.format("array protocol") + "udp\n", {}, DROP),
    ("table eth0 list saddr pass\n198.18.1.1\ntable eth0 list protocol drop\nudp\n", {}, PASS),
    ("table eth0 list saddr pass\n198.18.1.1\ntable eth0 list protocol drop\nudp\n", {"saddr": "198.18.1.2"}, DROP),
    ("table eth1 list saddr pass\n198.18.1.1\ntable eth0 lpm saddr drop\n198.18.1.1\n", {}, DROP),
]


@pytest.mark.parametrize(("text", "given", "verdict"), VERDICTS)
def test_the_verdict_on_a_frame(kernel: FakeBpf, text: str, given: dict[str, object], verdict: int) -> None:
    load(text)
    assert kernel.machine().verdict(frame(**given)) == verdict  # type: ignore[arg-type]


def test_short_frames_pass(kernel: FakeBpf) -> None:
    """Nothing is read behind the end; the interpreter, like the verifier, raises if it could be."""
    load(HEAD.format("list saddr,dport") + "198.18.1.1 5000\n")
    machine = kernel.machine()
    whole = frame()
    assert [machine.verdict(whole[:length]) for length in (0, 13, 33, 37)] == [PASS] * 4
    assert machine.verdict(whole[:38]) == DROP
    assert machine.verdict(frame(options=10)[:77]) == PASS


def test_every_structure_finds_the_same(kernel: FakeBpf) -> None:
    """A thousand random frames: list, hash and lpm agree with a set of addresses, and array and list of ports too."""
    rng = Random(7)
    addresses = sorted({f"198.18.{rng.randrange(8)}.{rng.randrange(256)}" for _ in range(300)})
    ports = sorted({rng.randrange(200) for _ in range(60)})
    lists = {"saddr": addresses, "dport": [str(port) for port in ports]}
    wanted: dict[str, Callable[[str, int], bool]] = {
        "saddr": lambda address, _: address in addresses,
        "dport": lambda _, port: port in ports,
    }
    for structure, name in (
        ("list", "saddr"),
        ("hash", "saddr"),
        ("lpm", "saddr"),
        ("array", "dport"),
        ("list", "dport"),
    ):
        kernel.attached.clear()
        load(HEAD.format(f"{structure} {name}") + "\n".join(lists[name]) + "\n")
        machine = kernel.machine()
        for _ in range(1000):
            address, port = f"198.18.{rng.randrange(8)}.{rng.randrange(256)}", rng.randrange(200)
            dropped = machine.verdict(frame(saddr=address, ports=(1, port))) == DROP
            assert dropped == wanted[name](address, port), (structure, address, port)


def test_a_list_is_straight_line_code_and_a_hash_is_one_call(kernel: FakeBpf) -> None:
    """Each further rule of a list is one instruction more for a packet that it does not match."""
    executed = {}
    for structure in ("list", "hash"):
        for count in (10, 1000):
            kernel.attached.clear()
            names = "\n".join(f"10.0.{number // 250}.{number % 250}" for number in range(count))
            load(HEAD.format(f"{structure} saddr") + names + "\n")
            machine = kernel.machine()
            assert machine.verdict(frame()) == PASS
            executed[structure, count] = machine.executed
    assert executed["list", 1000] - executed["list", 10] == 990
    assert executed["hash", 1000] == executed["hash", 10]


def test_only_our_own_operations_are_emitted() -> None:
    """No word of a file becomes an operation: every program has these alone, and one function to call, the lookup."""
    known = {0x07, 0x0F, 0x14, 0x15, 0x16, 0x18, 0x26, 0x2D, 0x54, 0x56, 0x61, 0x62, 0x63, 0x64, 0x69, 0x71, 0x85, 0x95}
    for text, _, _ in VERDICTS:
        tables = tables_in(text.split("\n"))
        code = program(tables, [None if table.structure == "list" else 5 for table in tables])
        operations = [struct.unpack_from("<BBhI", code, at) for at in range(0, len(code), 8)]
        assert {one[0] for one in operations} <= known | {0xA4, 0xB4, 0xBC, 0xBF, 0xDC, 0}
        assert {one[3] for one in operations if one[0] == 0x85} <= {1}
