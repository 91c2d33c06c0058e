# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the kernel wait longer before it retransmits a SYN or SYN-ACK. Runs on a node, as root, with Python alone.

    python3 syn_timeout.py attach SECONDS | detach

The kernel waits for one second, and only a BPF program of type SOCK_OPS can change that. This one answers the question
for the timeout (BPF_SOCK_OPS_TIMEOUT_INIT) of every socket on the node and leaves all other questions to the kernel.
Attaching replaces an earlier program; detaching without one changes nothing. See bpf(2) and linux/bpf.h.
"""

import ctypes
import errno
import os
import re
import struct
import sys
from pathlib import Path

SYS_BPF = 321  # x86-64
PROG_LOAD, PROG_ATTACH, PROG_DETACH = 5, 8, 9
SOCK_OPS_PROGRAM, AT_SOCK_OPS = 13, 3
TIMEOUT_INIT = 1
CGROUP = "/sys/fs/cgroup"
USUAL_HZ = 250


def program(timeout: int) -> bytes:
    """The instructions: reply with `timeout` (jiffies) if that is what is asked, else with -1, for "as usual"."""
    instructions = [
        (0xB7, 0x03, 0, -1),  # r3 = -1
        (0x61, 0x12, 0, 0),  # r2 = context.op
        (0x55, 0x02, 1, TIMEOUT_INIT),  # skip one if r2 != TIMEOUT_INIT
        (0xB7, 0x03, 0, timeout),  # r3 = timeout
        (0x63, 0x31, 4, 0),  # context.reply = r3
        (0xB7, 0x00, 0, 1),  # r0 = 1
        (0x95, 0x00, 0, 0),  # return r0
    ]
    return b"".join(struct.pack("<BBhi", *instruction) for instruction in instructions)


def bpf(command: int, attributes: bytes) -> int:
    """The system call. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.create_string_buffer(attributes, len(attributes))
    result = int(libc.syscall(SYS_BPF, command, given, len(attributes)))
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf: " + os.strerror(ctypes.get_errno()))
    return result


def jiffies(seconds: int) -> int:
    """`seconds` in the unit of the kernel that runs."""
    try:
        text = Path("/boot/config-" + os.uname().release).read_text()
    except OSError:
        text = ""
    found = re.search(r"^CONFIG_HZ=(\d+)$", text, re.MULTILINE)
    return seconds * (int(found[1]) if found else USUAL_HZ)


def attach(cgroup: int, seconds: int) -> None:
    """Load the program and attach it to the cgroup and all cgroups below. It stays after this process has ended."""
    code = program(jiffies(seconds))
    text, license_name = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    words = (SOCK_OPS_PROGRAM, len(code) // 8, ctypes.addressof(text), ctypes.addressof(license_name), 0, 0, 0)
    loaded = bpf(PROG_LOAD, struct.pack("<IIQQIIQ", *words))
    bpf(PROG_ATTACH, struct.pack("<IIII", cgroup, loaded, AT_SOCK_OPS, 0))


def detach(cgroup: int) -> None:
    """Remove the program, if one is attached."""
    try:
        bpf(PROG_DETACH, struct.pack("<IIII", cgroup, 0, AT_SOCK_OPS, 0))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


if __name__ == "__main__":
    root = os.open(CGROUP, os.O_RDONLY | os.O_DIRECTORY)
    detach(root) if sys.argv[1] == "detach" else attach(root, int(sys.argv[2]))
