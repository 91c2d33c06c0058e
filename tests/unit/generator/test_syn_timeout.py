# SPDX-License-Identifier: GPL-2.0-or-later
"""The BPF program that lets the kernel wait longer for an answer to a SYN, and when it is attached."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fwlab.generator import syn_timeout, tcp_endpoints
from fwlab.generator.syn_timeout import TIMEOUT_INIT, detach, jiffies, program
from fwlab.model.declared_traffic import Connections, Traffic

WEB = Connections(clients="198.18.32.0/29", servers="198.19.32.0/30", port=8080, object_bytes=100, concurrent=16)


def replied(code: bytes, asked: int) -> int:
    """Execute the few instructions that the program uses, on a context with `asked` in its first field."""
    registers, context, place = [0] * 11, {0: asked, 4: 0}, 0
    instructions = [struct.unpack_from("<BBhi", code, at) for at in range(0, len(code), 8)]
    while True:
        operation, both, offset, value = instructions[place]
        target, source = both & 15, both >> 4
        place += 1
        if operation == 0xB7:
            registers[target] = value
        elif operation == 0x61:
            assert source == 1, "only the context may be read"
            registers[target] = context[offset]
        elif operation == 0x63:
            assert target == 1, "only the context may be written"
            context[offset] = registers[source]
        elif operation == 0x55:
            place += offset if registers[target] != value else 0
        else:
            assert operation == 0x95
            assert registers[0] == 1
            return context[4]


def test_it_answers_the_question_for_the_timeout_and_no_other() -> None:
    code = program(3750)
    assert replied(code, TIMEOUT_INIT) == 3750
    assert [replied(code, asked) for asked in range(20) if asked != TIMEOUT_INIT] == [-1] * 19


def test_seconds_become_jiffies_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _path: "# CONFIG_HZ_250 is not set\nCONFIG_HZ=1000\n")
    assert jiffies(3) == 3000

    def missing(_path: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert jiffies(3) == 750


@pytest.mark.parametrize(("number", "raised"), [(2, False), (1, True)])
def test_detaching_without_a_program_is_no_error(monkeypatch: pytest.MonkeyPatch, number: int, raised: bool) -> None:
    """ENOENT (2) says that none is attached; EPERM (1) does not."""

    def refuse(_command: int, _attributes: bytes) -> int:
        raise OSError(number, "refused")

    monkeypatch.setattr(syn_timeout, "bpf", refuse)
    if raised:
        with pytest.raises(OSError, match="refused"):
            detach(0)
    else:
        detach(0)


class Node:
    """Records the commands that it is given."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def run(self, command: str, **_: object) -> str:
        self.commands.append(command)
        return "300\n"

    def open(self, command: str) -> None:
        self.commands.append(command)


@pytest.mark.parametrize(
    ("beside", "losses"),
    [
        ({}, False),
        ({"background": "flood", "background_pps": 10}, True),
        ({"background": "flood", "background_pps": 10, "background_flat_out": False}, False),
    ],
)
def test_only_flat_out_and_without_losses_a_syn_waits_longer(beside: dict[str, object], losses: bool) -> None:
    declared = Traffic(connections={**WEB.model_dump(exclude_unset=True), **beside}).connections
    generator, sink = Node(), Node()
    with tcp_endpoints.tcp_endpoints(generator, sink, "198.18.0.2", declared) as endpoints:
        endpoints.flat_out()
        expected = "detach;" if losses else "attach 5;"
        assert expected in generator.commands[-1]
        assert expected in sink.commands[0]
    for node in (generator, sink):
        assert node.commands[-1].endswith("detach"), "as before"
