# SPDX-License-Identifier: GPL-2.0-or-later
"""Which stream sends when on one core: TRex's event queue, with its order of simultaneous events.

The queue is the binary heap of the GNU C++ library. The order of two streams due at the same instant follows from that
heap's sift rules, so they are reproduced here; Python's heapq has others. A housekeeping event is in the same queue
once per millisecond.
"""

from collections.abc import Sequence

import numpy as np

from fwlab.model.errors import BadInput
from fwlab.traffic.cores import Task

_HOUSEKEEPING = -1
_HOUSEKEEPING_GAP = 0.001
_MANY = 1 << 16
#: No lab's traffic lasts two days. A stream that starts later would mean millions of housekeeping events.
MOST_SECONDS = 200_000


class _Queue:
    """A binary heap of task numbers, ordered by their times."""

    def __init__(self, times: dict[int, float]) -> None:
        self.items: list[int] = []
        self.times = times

    def push(self, item: int) -> None:
        self.items.append(item)
        self._rise(len(self.items) - 1, item)

    def pop(self) -> int:
        items, times = self.items, self.times
        top, last = items[0], items.pop()
        size = len(items)
        if not size:
            return top
        hole, child = 0, 0
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if times[items[child]] > times[items[child - 1]]:
                child -= 1
            items[hole] = items[child]
            hole = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * child + 1
            items[hole] = items[child]
            hole = child
        self._rise(hole, last)
        return top

    def _rise(self, hole: int, item: int) -> None:
        items, times = self.items, self.times
        time = times[item]
        while hole > 0:
            parent = (hole - 1) // 2
            if not times[items[parent]] > time:
                break
            items[hole] = items[parent]
            hole = parent
        items[hole] = item


def schedule(tasks: Sequence[Task], limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `limit` turns of a core's tasks, in order: seconds (float64) and task numbers (int64).

    Turns of inactive tasks are included and count towards the limit. Raises BadInput if a turn is due after days.
    """
    roots = [number for number, task in enumerate(tasks) if task.stream.self_start]
    if len(roots) > 1:
        return _interleaved(tasks, roots, limit)
    times, numbers = _one_by_one(tasks, roots, limit)
    if len(times) and times.max() > MOST_SECONDS:
        raise _too_late(tasks[int(numbers[times.argmax()])])
    return times, numbers


def _too_late(task: Task) -> BadInput:
    what = f"{task.stream.label}: a frame is due later than {MOST_SECONDS} seconds after the start"
    return BadInput(what, "give a higher rate or shorter gaps")


class _Progress:
    """The state of each task: packets, bursts and repetitions left, and whether it is running."""

    def __init__(self, tasks: Sequence[Task], roots: Sequence[int]) -> None:
        self.tasks = tasks
        self.packets = [task.burst for task in tasks]
        self.bursts = [task.bursts for task in tasks]
        self.loops = [task.stream.action_count for task in tasks]
        self.running = [number in roots for number in range(len(tasks))]

    def end(self, number: int, now: float) -> tuple[int, float]:
        """End a task after its last burst. Returns the task that starts now (or -1) and when it is due."""
        task = self.tasks[number]
        self.running[number] = False
        target = task.following
        if target < 0 or self.running[target]:
            return -1, 0.0
        if self.loops[number]:
            self.loops[number] -= 1
            if not self.loops[number]:
                return -1, 0.0
        follower = self.tasks[target]
        self.packets[target], self.bursts[target], self.running[target] = (
            follower.burst,
            follower.bursts,
            True,
        )
        return target, now + task.trail + follower.stream.isg / 1_000_000 + follower.lead


def _one_by_one(tasks: Sequence[Task], roots: Sequence[int], limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The turns if only one stream runs at any time: whole bursts at once, without a queue."""
    times: list[np.ndarray] = []
    numbers: list[np.ndarray] = []
    left = limit
    if not roots:
        return np.empty(0), np.empty(0, dtype=np.int64)
    progress, number = _Progress(tasks, roots), roots[0]
    due = tasks[number].start_delay
    while left and number >= 0:
        task = tasks[number]
        count = min(left, task.burst or left)
        steps = np.full(count, task.gap)
        steps[0] = due
        burst = np.add.accumulate(steps)  # sums sequentially, with the rounding of a running clock
        times.append(burst)
        numbers.append(np.full(count, number))
        left -= count
        progress.bursts[number] -= 1
        if progress.bursts[number]:
            due = burst[-1] + task.burst_delay
        else:
            number, due = progress.end(number, float(burst[-1]))
    return np.concatenate(times), np.concatenate(numbers)


def _interleaved(tasks: Sequence[Task], roots: Sequence[int], limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The turns if several streams run at once."""
    due = {number: tasks[number].start_delay for number in roots}
    due[_HOUSEKEEPING] = _HOUSEKEEPING_GAP
    queue, progress = _Queue(due), _Progress(tasks, roots)
    for number in [*roots, _HOUSEKEEPING]:
        queue.push(number)
    times: list[float] = []
    numbers: list[int] = []
    while len(times) < limit and len(queue.items) > 1:
        if queue.items[0] == _HOUSEKEEPING:
            first = min((item for item in queue.items if item != _HOUSEKEEPING), key=due.__getitem__)
            if due[first] > MOST_SECONDS:
                raise _too_late(tasks[first])
            _run_housekeeping(queue, due)
            continue
        number = queue.pop()
        now, task = due[number], tasks[number]
        times.append(now)
        numbers.append(number)
        if not task.burst:
            due[number] = now + task.gap
        else:
            progress.packets[number] -= 1
            if progress.packets[number]:
                due[number] = now + task.gap
            else:
                progress.bursts[number] -= 1
                if progress.bursts[number]:
                    due[number] = now + task.burst_delay
                    progress.packets[number] = task.burst
                else:
                    number, when = progress.end(number, now)
                    if number < 0:
                        continue
                    due[number] = when
        queue.push(number)
    return np.array(times, dtype=np.float64), np.array(numbers, dtype=np.int64)


def _run_housekeeping(queue: _Queue, due: dict[int, float]) -> None:
    """Process housekeeping events up to the next packet. If there are many, skip whole periods of the queue's order."""
    next_packet = min(due[item] for item in queue.items if item != _HOUSEKEEPING)
    seen: dict[tuple[int, ...], int] = {}
    done = 0
    while queue.items[0] == _HOUSEKEEPING:
        queue.pop()
        due[_HOUSEKEEPING] += _HOUSEKEEPING_GAP
        queue.push(_HOUSEKEEPING)
        done += 1
        if due[_HOUSEKEEPING] + 4 * len(queue.items) * _HOUSEKEEPING_GAP >= next_packet:
            continue
        state = tuple(queue.items)
        if state not in seen:
            seen[state] = done
            continue
        period = done - seen[state]
        _skip(due, next_packet, period)
        seen = {}


def _skip(due: dict[int, float], until: float, period: int) -> None:
    """Advance the housekeeping event by whole periods of milliseconds, up to `until`."""
    while True:
        ahead = min(int((until - due[_HOUSEKEEPING]) / _HOUSEKEEPING_GAP) + 2, _MANY)
        steps = np.full(ahead, _HOUSEKEEPING_GAP)
        steps[0] = due[_HOUSEKEEPING]
        clock = np.add.accumulate(steps)
        count = int(np.searchsorted(clock, until, side="left"))
        whole = (count - 1) // period * period
        if whole <= 0:
            return
        due[_HOUSEKEEPING] = float(clock[whole])
        if ahead < _MANY:
            return
