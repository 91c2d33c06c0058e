# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that sends the DUT the frames of each tick, and stops its virtual CPU until they are there.

    python player.py PIPE      (PIPE: the descriptor that QEMU's recorder of ticks writes to)

It reads one line of JSON from standard input (see `Play`), prints a line when the virtual CPU is attached, and at the
end one line of JSON: `ticks` played, and `late`, those that came at another time than the tick before them plus one
tick. Exits when its parent exits, or on SIGTERM. The kernel lets the virtual CPU go on when its tracer exits, whatever
the reason.

Why no tick can be late. When QEMU writes a tick into the pipe, the kernel sends a signal to the thread that wrote it,
which is the virtual CPU; being traced, it stops. (The pipe is asynchronous, and its owner is that thread.) Nothing
depends on how soon this program is scheduled. It now sends the frames, and QEMU's main thread has to take them in. For
that it needs QEMU's global lock, which the virtual CPU holds. So this program waits until the main thread sleeps on the
lock, lets the virtual CPU run to the system call that wakes the main thread, and stops it there, outside the lock. Once
QEMU's sockets are empty, the frames are in, and the virtual CPU goes on to the next tick.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import os
import platform
import random
import signal
import socket
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any, NamedTuple

CONT, DETACH, SYSCALL = 7, 17, 24
SEIZE, INTERRUPT, GETSIGMASK, SETSIGMASK, SYSCALL_INFO = 0x4206, 0x4207, 0x420A, 0x420B, 0x420E
TRACESYSGOOD = 1
EVENT_STOP = 128
WALL = 0x40000000  # __WALL: threads too
AT_SYSCALL = signal.SIGTRAP | 0x80
SYSCALL_EXIT = 2
F_SETSIG, F_SETOWN_EX, F_OWNER_TID = 10, 15, 0
#: Harmless by default, and unused by QEMU.
TICK_SIGNAL = signal.SIGURG
#: The number of the system call futex, by machine.
FUTEX = {"x86_64": 202, "aarch64": 98}
PIDFD_GETFD = 438  # on every architecture
#: Bytes of memory that a frame takes in the receive buffer of QEMU's socket in addition to its own, and bytes of the
#: smallest default buffer in use.
FRAME_OVERHEAD, BUFFER = 1024, 180_000
#: Time between two polls (s).
NAP_S = 0.00002
#: Time without a change after which this program gives up (s).
STUCK_S = 20.0
#: Maximum time to the DUT's next tick (s). On a slow host one takes 0.1 s.
TICK_S = 20.0
#: Maximum number of system calls in which the virtual CPU must meet the lock that the main thread waits for.
MAX_CALLS = 500
#: Ticks before the first frame, in which the DUT comes to rest after it was attached to.
FIRST_TICKS = 20
#: A tick: a broadcast frame of a local experimental Ethertype, with its number.
TICK = b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x88\xb5"
PCAP_HEADER, RECORD_HEADER = 24, 16
#: Of a frame table: its header, and a record for each frame (time, offset, length, stream).
TABLE_HEADER, TABLE_RECORD = 32, struct.Struct("<QIHH")

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_ulong, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Play(NamedTuple):
    """What to play.

    table      path of the frame table
    per_tick   frames in a tick, not necessarily whole; the table is repeated
    ticks      with frames
    tick_us    length of a tick by the DUT's clock
    rotated    seed of where among its frames each tick begins; null: at the first
    address, link, clock  where QEMU listens for frames of the link, and for ticks
    qemu, vcpu  process and thread
    """

    table: str
    per_tick: float
    ticks: int
    tick_us: int
    rotated: int | None
    address: str
    link: int
    clock: int
    qemu: int
    vcpu: int


class Stuck(Exception):
    """What did not happen in time."""


def ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> int:
    """ptrace(2) on one thread. Raises OSError."""
    done = int(libc.ptrace(request, thread, address, data))
    if done == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return done


class Table:
    """The frames of a frame table (engine/README.md), repeated without end."""

    def __init__(self, path: str) -> None:
        data = Path(path).read_bytes()
        self._data, self._count = data, struct.unpack_from("<I", data, 12)[0]

    def part(self, begin: int, end: int) -> list[bytes]:
        """The frames of these numbers."""
        return [self._frame(number % self._count) for number in range(begin, end)]

    def _frame(self, number: int) -> bytes:
        _, offset, length, _ = TABLE_RECORD.unpack_from(self._data, TABLE_HEADER + TABLE_RECORD.size * number)
        begin = TABLE_HEADER + TABLE_RECORD.size * self._count + offset
        return self._data[begin : begin + length]


class VirtualCpu:
    """The thread of QEMU's that runs the DUT: it stops whenever it has written a tick."""

    def __init__(self, qemu: int, thread: int, pipe: int) -> None:
        self._thread, self._pipe = thread, pipe
        self._futex = FUTEX[platform.machine()]
        self._main = os.open(f"/proc/{qemu}/task/{qemu}/syscall", os.O_RDONLY)
        self._info = ctypes.create_string_buffer(88)
        ptrace(SEIZE, thread, data=TRACESYSGOOD)
        ptrace(INTERRUPT, thread)
        self._wait()
        self._mask = self._blocked()
        self._block(self._mask & ~(1 << (TICK_SIGNAL - 1)))
        fcntl.fcntl(pipe, F_SETOWN_EX, struct.pack("ii", F_OWNER_TID, thread))
        fcntl.fcntl(pipe, F_SETSIG, TICK_SIGNAL)
        self._asynchronous(True)
        ptrace(CONT, thread)

    def detach(self) -> None:
        """Let the stopped thread go on, untraced, as it was."""
        self._asynchronous(False)
        self._block(self._mask)
        ptrace(DETACH, self._thread)

    def until_tick(self) -> None:
        """Wait until the thread has written into the pipe; it is stopped then, and holds QEMU's lock."""
        while (signaled := self._wait()) != TICK_SIGNAL:
            ptrace(CONT, self._thread, data=signaled)

    def yield_lock(self) -> None:
        """Run to the system call that hands QEMU's lock to the main thread. Raises Stuck if there is none."""
        number = str(self._futex).encode() + b" "
        waited_from = time.monotonic()
        while not os.pread(self._main, 8, 0).startswith(number):
            if time.monotonic() - waited_from > STUCK_S:
                raise Stuck("QEMU's main thread did not take the frames in")
            time.sleep(NAP_S)
        signaled = 0
        for _ in range(MAX_CALLS):
            ptrace(SYSCALL, self._thread, data=signaled)
            signaled = self._wait(at_syscall=True)
            if signaled == TICK_SIGNAL:
                raise Stuck("a tick passed before its frames were taken in")
            if signaled == 0 and self._left() == self._futex:
                return
        raise Stuck("QEMU's main thread did not get the lock")

    def go(self) -> None:
        """Run on."""
        ptrace(CONT, self._thread)

    def _wait(self, *, at_syscall: bool = False) -> int:
        """Wait for the next stop: the signal that caused it; 0 for one of ours, and at a system call if asked for."""
        _, status = os.waitpid(self._thread, WALL)
        if not os.WIFSTOPPED(status):
            raise Stuck("QEMU ended")
        found = os.WSTOPSIG(status)
        return 0 if (status >> 16) == EVENT_STOP or (at_syscall and found == AT_SYSCALL) else found

    _entered = 0

    def _left(self) -> int | None:
        """The number of the system call that the thread returns from; None if it enters one."""
        ptrace(SYSCALL_INFO, self._thread, ctypes.sizeof(self._info), ctypes.addressof(self._info))
        if self._info.raw[0] == SYSCALL_EXIT:
            return self._entered
        self._entered = struct.unpack_from("<Q", self._info.raw, 24)[0]
        return None

    def _blocked(self) -> int:
        mask = ctypes.c_uint64()
        ptrace(GETSIGMASK, self._thread, 8, ctypes.addressof(mask))
        return mask.value

    def _block(self, signals: int) -> None:
        mask = ctypes.c_uint64(signals)
        ptrace(SETSIGMASK, self._thread, 8, ctypes.addressof(mask))

    def _asynchronous(self, on: bool) -> None:
        flags = fcntl.fcntl(self._pipe, fcntl.F_GETFL)
        fcntl.fcntl(self._pipe, fcntl.F_SETFL, flags | os.O_ASYNC if on else flags & ~os.O_ASYNC)


class Inlet:
    """A UDP socket of QEMU's: where to send, and whether QEMU has read all of it."""

    def __init__(self, qemu: int, address: str, port: int) -> None:
        self._to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._to.connect((address, port))
        self.send = self._to.send
        self._left = array.array("i", [0])
        self._borrowed = _borrowed(qemu, port)
        self._listed = os.open("/proc/net/udp", os.O_RDONLY)
        self._key = f": {socket.inet_aton(address)[::-1].hex().upper()}:{port:04X} ".encode()

    def drained(self) -> bool:
        """Whether nothing waits to be read."""
        if self._borrowed is not None:
            fcntl.ioctl(self._borrowed, termios.FIONREAD, self._left)
            return not self._left[0]
        found = os.pread(self._listed, 1 << 20, 0)
        at = found.find(self._key)
        if at < 0:
            raise Stuck("QEMU closed its socket")
        return found[at + len(self._key) :].split(None, 4)[2].endswith(b":00000000")


def _borrowed(qemu: int, port: int) -> socket.socket | None:
    """QEMU's own socket, where this user may have it: quicker to ask than the kernel's list."""
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(qemu)
        for entry in Path(f"/proc/{qemu}/fd").iterdir():
            copy = int(libc.syscall(PIDFD_GETFD, pidfd, int(entry.name), 0))
            if copy < 0:
                continue
            try:
                found = socket.socket(fileno=copy)
            except OSError:
                os.close(copy)
                continue
            if (found.family, found.type) == (socket.AF_INET, socket.SOCK_DGRAM) and found.getsockname()[1] == port:
                return found
            found.close()
    return None


class Pipe:
    """The recorder of ticks: pcap records, whose times are those of the DUT's clock."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._data, self._begun = descriptor, b"", False

    def tick(self) -> tuple[int, int] | None:
        """The tick's number and its time (us); None if the pipe holds none yet."""
        with contextlib.suppress(BlockingIOError):
            self._data += os.read(self._descriptor, 1 << 16)
        if not self._begun:
            if len(self._data) < PCAP_HEADER:
                return None
            self._begun, self._data = True, self._data[PCAP_HEADER:]
        if len(self._data) < RECORD_HEADER:
            return None
        seconds, us, kept = struct.unpack_from("<III", self._data)
        if len(self._data) < RECORD_HEADER + kept:
            return None
        number = struct.unpack_from("<I", self._data, RECORD_HEADER + len(TICK))[0]
        self._data = self._data[RECORD_HEADER + kept :]
        return number, seconds * 1_000_000 + us


def numbered(tick: int) -> bytes:
    """The frame that signals a tick, of Ethernet's minimum length."""
    return (TICK + struct.pack("<I", tick)).ljust(60, b"\0")


class Player:
    """Sends the frames of one play, tick by tick."""

    def __init__(self, play: Play, pipe: int) -> None:
        self._play, self._table = play, Table(play.table)
        self._turn = None if play.rotated is None else random.Random(play.rotated)
        self._link = Inlet(play.qemu, play.address, play.link)
        self._clock = Inlet(play.qemu, play.address, play.clock)
        self._pipe = Pipe(pipe)
        self._cpu = VirtualCpu(play.qemu, play.vcpu, pipe)
        self.late = 0

    def run(self) -> int:
        """Play to the end; returns how many ticks were released."""
        total, before = FIRST_TICKS + self._play.ticks, None
        self._clock.send(numbered(0))
        frames = self._due(1)
        while True:
            signal.setitimer(signal.ITIMER_REAL, TICK_S)
            self._cpu.until_tick()
            tick = self._pipe.tick()
            if tick is None:
                self._cpu.go()
                continue
            number, at_us = tick
            if before is not None and at_us - before != self._play.tick_us and number > FIRST_TICKS:
                self.late += 1
            before = at_us
            if number == total:
                self._cpu.detach()
                return number
            self._hand_over(frames, number + 1)
            self._cpu.go()
            frames = self._due(number + 2)

    def _due(self, tick: int) -> list[bytes]:
        """The frames that the DUT gets at this tick."""
        place = tick - FIRST_TICKS - 1
        if not 0 <= place < self._play.ticks:
            return []
        each = self._play.per_tick
        frames = self._table.part(int(place * each), int((place + 1) * each))
        if self._turn is None:
            return frames
        at = self._turn.randrange(len(frames) + 1)
        return frames[at:] + frames[:at]

    def _hand_over(self, frames: list[bytes], tick: int) -> None:
        """Send these frames and the next tick, and wait until QEMU has them: before the DUT can reach that tick."""
        longest = max(map(len, frames), default=0)
        room = max(1, BUFFER // (longest + FRAME_OVERHEAD))
        parts = [frames[at : at + room] for at in range(0, len(frames), room)] or [[]]
        for frame in parts[0]:
            self._link.send(frame)
        last = len(parts) == 1
        if last:
            self._clock.send(numbered(tick))
        self._cpu.yield_lock()
        self._until_drained(self._link)
        for part in parts[1:]:
            for frame in part:
                self._link.send(frame)
            self._until_drained(self._link)
        if not last:
            self._clock.send(numbered(tick))
        self._until_drained(self._clock)

    def _until_drained(self, inlet: Inlet) -> None:
        waited_from = time.monotonic()
        while not inlet.drained():
            if time.monotonic() - waited_from > STUCK_S:
                raise Stuck("QEMU did not read the frames")
            time.sleep(NAP_S)


def _no_tick(*_: object) -> None:
    raise Stuck(f"the DUT's clock sent no tick for {TICK_S:g} s")


def main() -> int:
    """Play, and print what came of it. Exit status 1: the virtual CPU may not be traced."""
    pipe = int(sys.argv[1])
    libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: end with the parent
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    try:
        player = Player(Play(**given), pipe)
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        return 1
    signal.signal(signal.SIGALRM, _no_tick)
    print("attached", flush=True)
    try:
        print(json.dumps({"ticks": player.run(), "late": player.late}), flush=True)
    except (Stuck, ProcessLookupError, ChildProcessError) as error:
        print(json.dumps({"problem": str(error) or "QEMU ended"}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
