# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that lets one thread of another process run only in slices (ptrace(2): SEIZE, INTERRUPT, CONT).

    python vcpu_throttle.py THREAD RUN STOP      (RUN and STOP: seconds of each slice and of the pause after it)

Prints one line when the first pause begins. Exits when its parent exits or on SIGTERM. The kernel resumes the thread
when its tracer exits, whatever the reason, so nothing can leave a machine stopped.
"""

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
    """ptrace(2) on one thread. Raises OSError."""
    if libc.ptrace(request, thread, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def resume(thread: int, status: int) -> None:
    """Resume the thread, and deliver the signal that stopped it, if one did."""
    ours = (status >> 16) == EVENT_STOP
    ptrace(CONT, thread, 0 if ours else os.WSTOPSIG(status))


def run_for(thread: int, seconds: float) -> None:
    """Let the thread run. A signal that stops it is delivered to it within a millisecond."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        found, status = os.waitpid(thread, os.WNOHANG | WALL)
        if found and os.WIFSTOPPED(status):
            resume(thread, status)
        time.sleep(min(left, 0.001))


def stop_for(thread: int, seconds: float) -> None:
    """Stop the thread, then resume it. Raises SystemExit if it exits, OSError if it is gone."""
    ptrace(INTERRUPT, thread)
    while True:
        _, status = os.waitpid(thread, WALL)
        if not os.WIFSTOPPED(status):
            raise SystemExit(0)  # the thread exited
        if (status >> 16) == EVENT_STOP:
            break
        resume(thread, status)
    time.sleep(seconds)
    resume(thread, status)


def main() -> int:
    """Run and stop the thread in turn. Returns the exit status: 1 if ptrace is denied."""
    thread, run_s, stop_s = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    parent = os.getppid()
    asked_to_exit: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: asked_to_exit.append(True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A slice that ends late empties the ring. A user who may not set this priority needs a quieter host.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        ptrace(SEIZE, thread)
        print("throttling", flush=True)
        while not asked_to_exit and os.getppid() == parent:
            stop_for(thread, stop_s)
            run_for(thread, run_s)
    except (ProcessLookupError, ChildProcessError):
        return 0  # the machine was stopped meanwhile; whoever waits for it reports that
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
