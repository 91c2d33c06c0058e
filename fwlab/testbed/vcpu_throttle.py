# SPDX-License-Identifier: GPL-2.0-or-later
"""A program: let one thread of another process run only in turns (ptrace(2): SEIZE, INTERRUPT, CONT).

    python turns.py THREAD RUNNING STANDING      (seconds of each turn)

Prints one line when the first turn begins, and ends when its parent is gone or tells it to (SIGTERM). The
kernel lets the thread go when its tracer ends, however it ends: nothing can leave a machine standing still.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

CONT, SEIZE, INTERRUPT = 7, 0x4206, 0x4207
EVENT_STOP = 128
WALL = 0x40000000  # __WALL: threads too

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_ulong, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request: int, thread: int, data: int = 0) -> None:
    if libc.ptrace(request, thread, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def continue_after(thread: int, status: int) -> None:
    """Let it go on; a signal that was on its way to it is handed over."""
    stopped_by = os.WSTOPSIG(status)
    ours = (status >> 16) == EVENT_STOP
    ptrace(CONT, thread, 0 if ours else stopped_by)


def run_for(thread: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        found, status = os.waitpid(thread, os.WNOHANG | WALL)
        if found and os.WIFSTOPPED(status):
            continue_after(thread, status)
        time.sleep(min(left, 0.001))


def stand_for(thread: int, seconds: float) -> None:
    ptrace(INTERRUPT, thread)
    while True:
        _, status = os.waitpid(thread, WALL)
        if not os.WIFSTOPPED(status):
            raise SystemExit(0)  # the thread ended
        if (status >> 16) == EVENT_STOP:
            break
        continue_after(thread, status)
    time.sleep(seconds)
    continue_after(thread, status)


def main() -> int:
    thread, running, standing = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    parent, ended = os.getppid(), []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A turn that ends late runs the ring dry. Whoever may not have this priority has to have a quieter host.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        ptrace(SEIZE, thread)
        print("taking turns", flush=True)
        while not ended and os.getppid() == parent:
            stand_for(thread, standing)
            run_for(thread, running)
    except (ProcessLookupError, ChildProcessError):
        return 0  # the machine was stopped meanwhile; whoever waits for it will say so
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
