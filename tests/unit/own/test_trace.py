# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose trace a step gets: the kernel sends membership reports of its own whenever it likes."""

import struct

import pytest

from fwlab.own import bench
from fwlab.own.bench import Trace

IPV4, RULE = 2, 3
#: The attribute with the packet's IP header.
NETWORK_HEADER = 8


class Kernel:
    """A netlink socket from which these messages are read."""

    def __init__(self, messages: list[bytes]) -> None:
        self._messages = messages

    def recv(self, _size: int) -> bytes:
        if not self._messages:
            raise BlockingIOError
        return self._messages.pop(0)


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def event(packet: int, table: str, chain: str, handle: int) -> bytes:
    """A rule of this chain accepted this packet."""
    attributes = b"".join(
        (
            attribute(bench.TABLE, table.encode() + b"\0"),
            attribute(bench.CHAIN, chain.encode() + b"\0"),
            attribute(bench.HANDLE, struct.pack("!Q", handle)),
            attribute(bench.KIND, struct.pack("!I", RULE)),
            attribute(bench.VERDICT, attribute(1, struct.pack("!i", 1))),
            attribute(bench.ID, struct.pack("!I", packet)),
        )
    )
    body = struct.pack("BBH", IPV4, 0, 0) + attributes
    return struct.pack("=IHHII", 16 + len(body), bench.TRACE, 0, 0, 0) + body


REPORT = [event(7, bench.MARKS, "output", 1), event(7, "filter", "OUTPUT", 5)]
ARRIVES = [event(8, bench.MARKS, "prerouting", 1), event(8, "filter", "FORWARD", 9)]


@pytest.mark.parametrize(
    ("messages", "sent", "handle"),
    [
        ([*ARRIVES, *REPORT], False, 9),
        ([*REPORT, *ARRIVES], False, 9),
        ([REPORT[0], ARRIVES[0], REPORT[1], ARRIVES[1]], False, 9),
        ([*REPORT, *ARRIVES], True, 5),
    ],
)
def test_what_the_machine_sends_meanwhile_is_not_what_arrived(messages: list[bytes], sent: bool, handle: int) -> None:
    trace = Trace.__new__(Trace)
    trace._socket = Kernel(list(messages))  # type: ignore[assignment]
    met, _ = trace.read(sent=sent)
    assert [one[3] for one in met] == [handle]


def test_a_packets_headers_are_not_read_as_what_it_met() -> None:
    message = event(8, "filter", "FORWARD", 9)
    body = message[16:] + attribute(bench.MARK, struct.pack("!I", 5)) + attribute(NETWORK_HEADER, bytes(20))
    assert bench.Event.of(body) == (8, 5, ("ip", "filter", "FORWARD", 9, "rule", "accept", ""))
