# SPDX-License-Identifier: GPL-2.0-or-later
"""Larger receive buffers for the UDP sockets of another process, and none left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.testbed.qemu_process import large_receive_buffers

#: Prints the sizes of a UDP and a TCP socket's receive buffers for each line that it reads.
PROGRAM = """
import socket, sys
kinds = socket.SOCK_DGRAM, socket.SOCK_STREAM
sockets = [socket.socket(type=kind) for kind in kinds]
for line in sys.stdin:
    print(*(one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for one in sockets), flush=True)
"""


class Other:
    """A process with two sockets."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True)

    def sizes(self) -> list[int]:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [int(word) for word in self.process.stdout.readline().split()]


@pytest.fixture
def other() -> Iterator[Other]:
    made = Other()
    yield made
    made.process.communicate()


def test_only_udp_sockets_get_larger_and_only_meanwhile(other: Other) -> None:
    udp, tcp = other.sizes()
    most = 2 * int(Path("/proc/sys/net/core/rmem_max").read_text())
    with large_receive_buffers([other.process.pid]):
        assert other.sizes()[1] == tcp
        assert other.sizes()[0] > udp or most <= udp
    assert other.sizes() == [udp, tcp]


def test_they_are_as_before_after_an_error_too(other: Other) -> None:
    before = other.sizes()
    with pytest.raises(KeyboardInterrupt), large_receive_buffers([other.process.pid]):
        raise KeyboardInterrupt
    assert other.sizes() == before


def test_nothing_stays_open_here(other: Other) -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    other.sizes()
    with large_receive_buffers([other.process.pid]):
        pass
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_a_process_that_has_ended_is_no_error(other: Other) -> None:
    other.process.communicate()
    with large_receive_buffers([other.process.pid]):
        pass
