# SPDX-License-Identifier: GPL-2.0-or-later
"""One play of a traffic at an exact load in the DUT's own time."""

import contextlib
import json
import math
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from fwlab.generator.pacing import player
from fwlab.generator.pacing.wires import Attached, Monitor, Wires, attached, recording, wires_of
from fwlab.generator.recording import UNKNOWN, KnownFrames, Recording, foreign, read_recording, what_left
from fwlab.generator.traffic_store import TrafficStore
from fwlab.host.environment import timeout_scale
from fwlab.host.process import helper, piped
from fwlab.model.declared_traffic import TrafficClass
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import PacedPlay, PacedTrial
from fwlab.testbed.qemu_process import arguments_of, domain_of, qemu_of, vcpu_thread
from fwlab.testbed.throttle import UNTRACEABLE

#: A tick of the DUT's clock (us). The frames of one reach the DUT as one burst, so a tick has to be short compared with
#: what a ruleset can store (the burst of a limit, divided by its rate).
TICK_US = 1000
#: Part of a frame by which a count is exceeded, so that rounding never takes the last one away.
SLIVER = 1e-4
#: Maximum number of times through the DUT in a result.
MAX_TIMES = 1001
#: Maximum number of frames that a node itself may send (neighbour and group discovery).
MAX_STRAY = 2
#: Real seconds that a play may take, and those for each second of the DUT's clock. On an idle host such a second takes
#: one or two.
GRACE_S, SLOWEST = 60.0, 90.0


@dataclass(frozen=True)
class Sent:
    """Frames that the DUT sent: by class, by its last NIC and by its first; and foreign ones, by what is wrong.

    errors  ICMP "fragmentation needed" that it sent back, by the class of the frame that they are about
    """

    forwarded: dict[str, int]
    returned: dict[str, int]
    errors: dict[str, int]
    foreign: dict[str, int]

    def arrived(self, classes: Mapping[str, TrafficClass]) -> dict[str, int]:
        """Frames of each class that left for the end at which it is counted."""
        back = [name for name, c in classes.items() if c.at == "generator"]
        return {**self.forwarded, **{name: self.returned[name] for name in back}}


#: Counts what the DUT sends of this traffic while it is open. The function that it yields returns the counts.
Recorder = Callable[[TrafficStore, str], contextlib.AbstractContextManager[Callable[[], Sent]]]


@dataclass(frozen=True)
class Load:
    """What to play.

    pps       packets per second of the DUT's clock
    settle_s  seconds of that clock before the first trial
    trials    how many, one after the other in the same play ...
    trial_s   ... and how long each is (s of the DUT's clock)
    tail_s    how long the load goes on after the last trial (s of the DUT's clock)
    rotated   whether each tick begins at a random one of its frames. Where the ring is full, only the first of a tick
              find room, so beginning with the same ones each time would favour a class
    timed     whether to find out how long each frame took through the DUT
    """

    pps: float
    settle_s: float
    trials: int
    trial_s: float
    tail_s: float = 0.0
    rotated: bool = False
    timed: bool = False

    @classmethod
    def of_count(cls, frames: int, pps: float) -> Self:
        """`frames` frames in one trial, at this load or a little less: the last tick is as full as the others."""
        ticks = math.ceil(frames / (pps * TICK_US) * 1e6)
        seconds = ticks * TICK_US / 1e6
        return cls(pps=(frames + SLIVER) / seconds, settle_s=0.0, trials=1, trial_s=seconds)

    @property
    def ticks(self) -> int:
        """Ticks with frames."""
        return self._ticks(self.settle_s) + self.trials * self._ticks(self.trial_s) + self._ticks(self.tail_s)

    @staticmethod
    def _ticks(seconds: float) -> int:
        return max(1, round(seconds * 1e6 / TICK_US)) if seconds else 0

    @property
    def frames(self) -> int:
        """Frames in all."""
        return int(self.ticks * self.per_tick)

    @property
    def per_tick(self) -> float:
        """Frames in each tick, not necessarily whole."""
        return self.pps * TICK_US / 1e6

    def windows_us(self) -> Iterator[tuple[int, int]]:
        """Begin and end of each trial, from the first frame on."""
        begin = self._ticks(self.settle_s) * TICK_US
        each = self._ticks(self.trial_s) * TICK_US
        for trial in range(self.trials):
            yield begin + trial * each, begin + (trial + 1) * each


class PacedLoad:
    """Plays at exact loads, on the DUT whose QEMU forwards an SSH port."""

    def __init__(self, ssh_address: str, ssh_port: int, link_ports: tuple[int, int], ends: tuple[str, str]) -> None:
        """link_ports: where the DUT's QEMU takes frames of the first and of the last link; ends: the MAC addresses of
        the generator and of the sink, without which a frame reaches neither."""
        self._forwarded, self._link_ports, self._ends = (ssh_address, ssh_port), link_ports, ends

    def play(self, store: TrafficStore, traffic: str, load: Load, *, until_done: Callable[[], None]) -> PacedPlay:
        """Play, and count what passed the DUT's NICs.

        until_done  called at the end of the load: returns once the DUT has processed what it took

        Raises CannotMeasure. A play whose counts are in doubt has problems instead.
        """
        known = store.known_frames(traffic)
        qemu = qemu_of(*self._forwarded)  # restoring the DUT starts another process
        wires = wires_of(arguments_of(qemu), self._link_ports, self._forwarded[0])
        monitor = Monitor(domain_of(qemu))
        with contextlib.ExitStack() as stack:
            with monitor.suspended():
                filters = stack.enter_context(attached(monitor, wires, tick_us=TICK_US, kept=known.kept))
                process = stack.enter_context(helper(player.__file__, filters.pipe, fds=[filters.pipe]))
                _hand_over(process, store.path(traffic), store.seed, load, wires, filters, qemu)
            answer = _line(process, GRACE_S + SLOWEST * load.ticks * TICK_US / 1e6)
            until_done()
            # The recorders write each frame at once, and their files go with the context.
            files = {"received": filters.received, "forwarded": filters.forwarded, "returned": filters.returned}
            found = {name: read_recording(path, known.kept) for name, path in files.items()}
        return _counted(known, load, json.loads(answer), found, self._ends)

    @contextlib.contextmanager
    def recording(self, store: TrafficStore, traffic: str) -> Iterator[Callable[[], Sent]]:
        """Record what the DUT sends while the context is open. The function it yields counts what was sent by then.

        Raises CannotMeasure.
        """
        qemu = qemu_of(*self._forwarded)
        wires = wires_of(arguments_of(qemu), self._link_ports, self._forwarded[0])
        known = store.known_frames(traffic)
        with recording(Monitor(domain_of(qemu)), wires, kept=known.kept) as files:

            def sent() -> Sent:
                forwarded, returned = (read_recording(file, known.kept) for file in (files.forwarded, files.returned))
                on, back = what_left(known, forwarded, returned, self._ends)
                errors = known.counted(known.quoted(returned))
                copies = known.copies(forwarded) + known.copies(returned)
                return Sent(known.counted(on), known.counted(back), errors, foreign(on, back, copies=copies))

            yield sent


def _hand_over(
    process: subprocess.Popen[str],
    table: Path,
    seed: int,
    load: Load,
    wires: Wires,
    filters: Attached,
    qemu: int,
) -> None:
    """Tell the player what to play, and wait until it has the virtual CPU."""
    play = player.Play(
        table=str(table),
        per_tick=load.per_tick,
        ticks=load.ticks,
        tick_us=TICK_US,
        rotated=seed if load.rotated else None,
        address=wires.address,
        link=wires.link_port,
        clock=filters.clock_port,
        qemu=qemu,
        vcpu=vcpu_thread(qemu),
    )
    piped(process.stdin).write(json.dumps(play._asdict()) + "\n")
    piped(process.stdin).flush()
    _line(process, GRACE_S)


def _line(process: subprocess.Popen[str], seconds: float) -> str:
    """The next line that the player prints. Raises CannotMeasure."""
    stdout, end = piped(process.stdout), time.monotonic() + seconds * timeout_scale()
    ready, _, _ = select.select([stdout], [], [], max(0.0, end - time.monotonic()))
    if not ready:
        raise CannotMeasure(f"the load was not played within {seconds:.0f} s", "fwlab doctor")
    line = stdout.readline()
    if not line:
        reason = piped(process.stderr).read().strip().splitlines()
        raise CannotMeasure(
            f"cannot pace the DUT: {reason[-1] if reason else 'the player ended'}",
            UNTRACEABLE,
        )
    return line


def _counted(
    known: KnownFrames, load: Load, answer: dict[str, int | str], found: dict[str, Recording], ends: tuple[str, str]
) -> PacedPlay:
    """The counts of each trial and of the whole, and what is wrong with them."""
    received, forwarded, returned = (found[name] for name in ("received", "forwarded", "returned"))
    came, (on, back) = known.arrived(received), what_left(known, forwarded, returned, ends)
    begin = int(received.times_us[0]) if len(received) else 0
    trials = []
    for low, high in load.windows_us():
        parts = [
            known.counted(classes[(some.times_us >= begin + low) & (some.times_us < begin + high)])
            for classes, some in ((came, received), (on, forwarded), (back, returned))
        ]
        trials.append(
            PacedTrial(duration_s=(high - low) / 1e6, offered=parts[0], forwarded=parts[1], returned=parts[2])
        )
    others = int((came == UNKNOWN).sum())
    reached = len(received) - others
    unexpected = list(_unexpected(others))
    return PacedPlay(
        load=load.pps,
        tick_s=TICK_US / 1e6,
        offered=load.frames,
        received=reached,
        forwarded=known.counted(on),
        returned=known.counted(back),
        errors=known.counted(known.quoted(returned)),
        foreign=foreign(on, back, copies=known.more_than_came(received, forwarded, returned)),
        trials=trials,
        transit_s=_transit_s(received, forwarded) if load.timed else [],
        problems=[*_problems(answer, load.frames, reached), *unexpected],
        suspects=unexpected,
    )


def _transit_s(received: Recording, forwarded: Recording) -> list[float]:
    """Times from the first NIC to the last (s), in equal steps from the shortest to the longest.

    Equal frames leave in the order in which they came. If one of them was lost it is not known which, so none of these
    counts.
    """
    keys, came = np.unique(received.keys, return_counts=True)
    left_keys, left = np.unique(forwarded.keys, return_counts=True)
    both, here, there = np.intersect1d(keys, left_keys, assume_unique=True, return_indices=True)
    whole = both[came[here] == left[there]]
    times = [
        recording.times_us[rows[np.argsort(recording.keys[rows], kind="stable")]]
        for recording in (received, forwarded)
        for rows in [np.flatnonzero(np.isin(recording.keys, whole))]
    ]
    took = np.sort(times[1] - times[0])
    if not len(took):
        return []
    steps = np.linspace(0, len(took) - 1, min(len(took), MAX_TIMES)).round().astype(int)
    return [round(float(took[step]) / 1e6, 6) for step in steps]


def _problems(answer: dict[str, int | str], offered: int, reached: int) -> Iterator[str]:
    """Why the load was not as it should have been."""
    if "problem" in answer:
        yield f"the load was not played to its end: {answer['problem']}"
        return
    if answer["late"]:
        yield f"{answer['late']} ticks came late, so the load was not constant"
    if reached != offered:
        yield f"{reached} frames of the traffic reached the DUT's NIC, {offered} were offered"


def _unexpected(frames: int) -> Iterator[str]:
    """What reached the DUT in addition to the traffic. A generator may answer what a ruleset sends it."""
    if frames > MAX_STRAY:
        yield f"{frames} frames reached the DUT that are not of this traffic"
