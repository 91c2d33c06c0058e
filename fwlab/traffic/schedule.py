# SPDX-License-Identifier: GPL-2.0-or-later
"""Which stream sends when: TRex's event queue, with its order of simultaneous events.

The queue is a binary heap. Which of two streams due at the same instant goes first follows from how the GNU C++
library moves the heap's items, so that is done here in the same way; Python's heapq differs. A housekeeping event
is in the same queue once per millisecond. The published results depend on it: without either, 51 of the labs' 64 tables
with several streams would have another order.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fwlab.model.errors import BadInput
from fwlab.traffic.streams import Stream

_HOUSEKEEPING = -1
_HOUSEKEEPING_GAP = 0.001
_MANY = 1 << 16
#: No lab's traffic lasts two days. A stream that starts later would mean millions of housekeeping events.
MAX_SECONDS = 200_000


class _Queue:
    """A binary heap of event numbers, ordered by their times."""

    def __init__(self, times: dict[int, float]) -> None:
        self.items: list[int] = []
        self.times = times
        for item in times:
            self.push(item)

    def push(self, item: int) -> None:
        items, times = self.items, self.times
        hole = len(items)
        items.append(item)
        while hole > 0 and times[items[(hole - 1) // 2]] > times[item]:
            items[hole] = items[(hole - 1) // 2]
            hole = (hole - 1) // 2
        items[hole] = item

    def pop(self) -> int:
        self.put_off(math.inf)
        return self.items.pop()

    def put_off(self, time: float) -> None:
        """Pop the first event and push it again, due at this time. In one loop, because every frame needs it."""
        items, times = self.items, self.times
        top, size = items[0], len(items) - 1
        last = items[size]
        hole, child, inner = 0, 0, (size - 1) // 2
        while child < inner:
            child = 2 * child + 2
            item = items[child]
            if times[item] > times[items[child - 1]]:
                child -= 1
                item = items[child]
            items[hole] = item
            hole = child
        if not size & 1 and child == (size - 2) // 2:
            child = 2 * child + 1
            items[hole] = items[child]
            hole = child
        times[top] = time
        for start, item in ((hole, last), (size, top)):
            hole, due = start, times[item]
            while hole > 0:
                parent = (hole - 1) // 2
                above = items[parent]
                if not times[above] > due:
                    break
                items[hole] = above
                hole = parent
            items[hole] = item


class _Timing(NamedTuple):
    """All of a stream that its turns depend on."""

    label: str
    number: int
    following: int
    self_start: bool
    isg: float
    gap: float
    burst: int
    bursts: int
    ibg: float
    loops: int


def schedule(streams: Sequence[Stream], limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `limit` turns, in order: seconds (float64) and places in `streams` (int64). Do not change them.

    Turns of streams that send nothing are included and count. Raises BadInput if a turn is due after days.
    """
    timings = (
        _Timing(
            *(stream.label, stream.index, stream.following, stream.self_start, stream.isg, stream.gap),
            *(stream.mode.burst, stream.mode.bursts, stream.mode.ibg, stream.action_count),
        )
        for stream in streams
    )
    return _schedule(tuple(timings), limit)


@lru_cache(maxsize=16)  # the profiles of a lab, a MB each; they are played with many seeds, which change no time
def _schedule(streams: tuple[_Timing, ...], limit: int) -> tuple[np.ndarray, np.ndarray]:
    due = {place: stream.isg / 1e6 for place, stream in enumerate(streams) if stream.self_start}
    if len(due) > 1:
        due[_HOUSEKEEPING] = _HOUSEKEEPING_GAP
    queue, following = _Queue(due), {stream.number: place for place, stream in enumerate(streams)}
    packets, bursts = [stream.burst for stream in streams], [stream.bursts for stream in streams]
    loops = [stream.loops for stream in streams]
    times: list[float] = []
    places: list[int] = []
    without = len(due) > 1  # the housekeeping event never ends
    while len(times) < limit and len(due) > without:
        place = queue.items[0]
        if place == _HOUSEKEEPING:
            queue.put_off(due[_HOUSEKEEPING] + _HOUSEKEEPING_GAP)
            if queue.items[0] == _HOUSEKEEPING:
                first = min(queue.items, key=lambda item: due[item] if item != _HOUSEKEEPING else np.inf)
                _reject_late(streams[first], due[first])
                _run_housekeeping(queue, due[first])
            continue
        now, stream = due[place], streams[place]
        times.append(now)
        places.append(place)
        if now > MAX_SECONDS:
            _reject_late(stream, now)
        if not stream.burst and len(due) == 1:  # it is alone for ever
            rest = np.add.accumulate([now, *[stream.gap] * (limit - len(times))])[1:]
            _reject_late(stream, float(rest[-1]) if len(rest) else now)
            return np.array([*times, *rest]), np.array(places + [place] * len(rest))
        packets[place] -= 1  # never 0 for a continuous stream
        if packets[place]:
            queue.put_off(now + stream.gap)
            continue
        packets[place], bursts[place] = stream.burst, bursts[place] - 1
        if bursts[place]:
            queue.put_off(now + stream.ibg / 1e6)
            continue
        del due[queue.pop()]
        target = following.get(stream.following)
        if target is None or target in due:
            continue
        loops[place] -= 1  # never 0 without a repeat count
        if not loops[place]:
            continue
        bursts[target] = streams[target].bursts
        due[target] = now + streams[target].isg / 1e6
        queue.push(target)
    return np.array(times, dtype=np.float64), np.array(places, dtype=np.int64)


def _reject_late(stream: _Timing, seconds: float) -> None:
    if seconds > MAX_SECONDS:
        what = f"{stream.label}: a frame is due later than {MAX_SECONDS} seconds after the start"
        raise BadInput(what, "give a higher rate or shorter gaps")


def _run_housekeeping(queue: _Queue, until: float) -> None:
    """Process housekeeping events until a packet is due. Of many, skip those that leave the queue's order as it was."""
    due, seen, done = queue.times, dict[tuple[int, ...], int](), 0
    while queue.items[0] == _HOUSEKEEPING:
        state, left = tuple(queue.items), min(int((until - due[_HOUSEKEEPING]) / _HOUSEKEEPING_GAP) - 2, _MANY)
        if left > 0 and state in seen:
            period = done - seen.pop(state)
            steps = np.full(left // period * period + 1, _HOUSEKEEPING_GAP)
            steps[0] = due[_HOUSEKEEPING]
            due[_HOUSEKEEPING] = float(np.add.accumulate(steps)[-1])  # with the rounding of a running clock
            seen.clear()
            if len(steps) > 1:
                continue
        seen[state], done = done, done + 1
        queue.put_off(due[_HOUSEKEEPING] + _HOUSEKEEPING_GAP)
