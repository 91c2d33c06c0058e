# SPDX-License-Identifier: GPL-2.0-or-later
"""Larger receive buffers for the UDP sockets of another process, and none left behind."""

import subprocess
import sys
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


def test_only_udp_sockets_get_larger_and_only_meanwhile() -> None:
    pipe = subprocess.PIPE
    other = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True)

    def sizes() -> list[int]:
        other.stdin.write("\n")
        other.stdin.flush()
        return [int(word) for word in other.stdout.readline().split()]

    udp, tcp = sizes()
    opened = sorted(Path("/proc/self/fd").iterdir())
    most = 2 * int(Path("/proc/sys/net/core/rmem_max").read_text())
    with large_receive_buffers([other.pid]):
        assert sizes()[1] == tcp
        assert sizes()[0] > udp or most <= udp
    assert sizes() == [udp, tcp]
    with pytest.raises(KeyboardInterrupt), large_receive_buffers([other.pid]):
        raise KeyboardInterrupt
    assert sizes() == [udp, tcp]
    assert sorted(Path("/proc/self/fd").iterdir()) == opened, "nothing stays open here"
    other.communicate()
    with large_receive_buffers([other.pid]):  # it has ended, which is no error
        pass
