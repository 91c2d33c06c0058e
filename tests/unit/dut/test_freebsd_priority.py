# SPDX-License-Identifier: GPL-2.0-or-later
"""Which threads and programs of a FreeBSD DUT go ahead of others under overload, and how that is done."""

import struct

from tests.fakes.fake_freebsd import lua
from tests.fakes.programs import needs

pytestmark = needs("lua5.4")


def test_the_program_that_makes_the_call() -> None:
    """An ELF file for FreeBSD on amd64 with one segment: rtprio_thread(RTP_SET, 100027, {RTP_PRIO_REALTIME, 31})."""
    code = 'for byte in require("priority").program(100027):gmatch(".") do io.write(("%02x"):format(byte:byte())) end'
    elf = bytes.fromhex(lua(code))
    assert elf[:8] == b"\x7fELF\x02\x01\x01\x09"
    kind, machine, _, entry, headers, _, _, size, each, count = struct.unpack_from("<HHIQQQIHHH", elf, 16)
    assert (kind, machine, headers, size, each, count) == (2, 62, 64, 64, 56, 1)
    load, flags, offset, address, _, in_file, in_memory, _ = struct.unpack_from("<IIQQQQQQ", elf, headers)
    assert (load, flags, offset, in_file, in_memory) == (1, 5, 0, len(elf), len(elf))
    text = elf[entry - address :]
    assert struct.unpack_from("<xIxIxI", text) == (466, 1, 100027)
    (places,) = struct.unpack_from("<i", text, 18)
    assert struct.unpack_from("<HH", text, 22 + places) == (2, 31)
    assert 22 + places + 4 == len(text)


def test_the_ssh_server_of_the_session_goes_ahead_of_packets() -> None:
    """It passes the answers on. The server that waits for others has no part in it."""
    code = """
    local processes = {
      [820] = { name = "sshd", parent = 1 },
      [1227] = { name = "sshd-session", parent = 820 },
      [1229] = { name = "sshd-session", parent = 1227 },
      [2067] = { name = "sh", parent = 1229 },
      [2070] = { name = "flua", parent = 2067 },
    }
    local system = { run = function(_, ...) print(table.concat({ ... }, " ")) end }
    require("priority").raise_session(system, processes, 2070)
    """
    assert lua(code).splitlines() == ["/usr/sbin/rtprio 10 -1229", "/usr/sbin/rtprio 10 -1227"]
