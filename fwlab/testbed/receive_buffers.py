# SPDX-License-Identifier: GPL-2.0-or-later
"""Larger receive buffers for the links of running machines, on hosts too busy to run each QEMU at once.

A socket link is a UDP socket of QEMU with the kernel's default buffer, which holds fewer than 300 short frames. While a
QEMU waits for a CPU of a busy host, more arrive from 256 open connections, and some are lost. A flood loses frames
anyway; a closed loop must lose none. QEMU has no option for the size, so its sockets are borrowed (pidfd_getfd).
"""

import contextlib
import ctypes
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

SYS_PIDFD_GETFD = 438  # on every architecture
#: Bytes; thousands of frames. An ordinary user gets net.core.rmem_max at most.
ROOM = 4 << 20
SO_RCVBUFFORCE = 33


@contextlib.contextmanager
def large_receive_buffers(processes: Iterable[int]) -> Iterator[None]:
    """Enlarge the buffers of the UDP sockets of these processes; they are as before on leaving.

    A socket that this user may not borrow keeps its size.
    """
    with contextlib.ExitStack() as opened:
        for process in processes:
            for udp in _udp_sockets(process, opened):
                size = udp.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
                opened.callback(_resize, udp, size // 2)  # the kernel says twice what was asked for
                _resize(udp, ROOM)
        yield


def _resize(udp: socket.socket, size: int) -> None:
    try:
        udp.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, size)
    except PermissionError:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def _udp_sockets(process: int, opened: contextlib.ExitStack) -> Iterator[socket.socket]:
    """Copies of the process's UDP sockets, closed with `opened`."""
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(process)
        opened.callback(os.close, pidfd)
        for entry in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                if not str(entry.readlink()).startswith("socket:"):
                    continue
                copy = socket.socket(fileno=_borrow(pidfd, int(entry.name)))
                opened.callback(copy.close)
                if (copy.family, copy.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                    yield copy


def _borrow(pidfd: int, descriptor: int) -> int:
    """A copy of another process's file descriptor. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    copy = int(libc.syscall(SYS_PIDFD_GETFD, pidfd, descriptor, 0))
    if copy < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return copy
