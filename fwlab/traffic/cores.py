# SPDX-License-Identifier: GPL-2.0-or-later
"""How TRex distributes streams over its cores, and in which order a core schedules them.

A continuous stream, or a burst of at least one packet per core, is split: each of n cores sends every n-th packet.
Other streams run on one core; the other cores keep an inactive copy that takes its turns but sends nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fwlab.model.errors import BadInput
from fwlab.traffic.rates import packets_per_second
from fwlab.traffic.streams import Stream

_PAUSED_GAP = 0.1  # seconds between two turns of a paused stream


@dataclass
class Task:
    """One stream as one core plays it.

    gap         seconds between packets of a burst
    burst       packets per burst; 0 for a continuous stream
    bursts      number of bursts
    lead, trail seconds that this core waits before its first and after its last packet of a burst
    following   index in the core's list of the task that starts when this one ends; -1 for none
    share       this core's number among the `shared_by` cores that split the stream's variables
    cache       frames made before they repeat; 0 for no limit
    """

    stream: Stream
    gap: float
    burst: int
    bursts: int
    active: bool
    lead: float = 0.0
    trail: float = 0.0
    following: int = -1
    share: int = 0
    shared_by: int = 1
    cache: int = 0

    @property
    def start_delay(self) -> float:
        """Seconds before the first burst."""
        return self.stream.isg / 1_000_000 + self.lead

    @property
    def burst_delay(self) -> float:
        """Seconds between two bursts."""
        return self.stream.mode.ibg / 1_000_000 + self.trail + self.lead


def distribute(streams: Sequence[Stream], cores: int) -> list[list[Task]]:
    """The tasks of each core, in the order in which they enter its queue."""
    in_order = table_order(streams)
    plain = [s for s in in_order if s.enabled and not s.sequenced]
    sequenced = [s for s in in_order if s.enabled and s.sequenced]
    lists: list[list[Task]] = [[] for _ in range(cores)]
    for stream in plain:
        if stream.core_id >= cores:
            raise BadInput(
                f"{stream.label}: core {stream.core_id} does not exist",
                f"cores are numbered 0 to {cores - 1}",
            )
        for core, task in enumerate(_split(stream, cores)):
            lists[core].append(task)
    for stream in sequenced:
        lists[0].append(_task(stream, packets_per_second(stream)))
    for tasks in lists:
        places = {task.stream.index: place for place, task in enumerate(tasks)}
        for task in tasks:
            task.following = places.get(task.stream.following, -1)
    return lists


def _split(stream: Stream, cores: int) -> list[Task]:
    pps = packets_per_second(stream)
    splits = stream.core_id < 0 and (stream.mode.type == "continuous" or stream.mode.burst >= cores)
    if cores == 1 or not splits:
        home = max(stream.core_id, 0)
        return [_task(stream, pps, active=core == home) for core in range(cores)]
    gap, tasks = 1.0 / pps, []
    burst, rest = divmod(stream.mode.burst, cores)
    for core in range(cores):
        task = _task(stream, pps * (1.0 / cores))
        more = core < rest
        task.burst, task.lead = burst + int(more), gap * core
        # at the end of a burst, each core waits until all cores have sent their last packet
        task.trail = gap * (rest - core - 1) if more else gap * (cores - 1 - core + rest)
        task.share, task.shared_by = core, cores
        if stream.vm.cache:
            per_core, left = divmod(stream.vm.cache, cores)
            task.cache = per_core + int(core < left) if per_core else 1
        tasks.append(task)
    return tasks


def _task(stream: Stream, pps: float, active: bool = True) -> Task:
    paused = stream.start_paused
    return Task(
        stream=stream,
        gap=_PAUSED_GAP if paused else 1.0 / pps,
        burst=stream.mode.burst,
        bursts=stream.mode.count if stream.mode.type == "multi_burst" else 1,
        active=active and not paused and not stream.silent,
        cache=0 if stream.sequenced or not stream.instructions else stream.vm.cache,
    )


# Successive sizes of the GNU C++ library's hash table.
_BUCKETS = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229)


def table_order(streams: Sequence[Stream]) -> list[Stream]:
    """Streams in the iteration order of TRex's stream table.

    That table is a GNU C++ hash table keyed by stream number: a new key comes first (or first in its bucket), and
    growing reverses the list. The order decides which of two streams due at the same instant goes first.
    """
    buckets = 1
    order: list[int] = []
    by_id = {stream.id: stream for stream in streams}
    for count, number in enumerate(by_id, start=1):
        if count > buckets or buckets == 1:
            buckets = next(size for size in _BUCKETS if size >= count)
            grown: list[int] = []
            for key in order:
                _insert(grown, key, buckets)
            order = grown
        _insert(order, number, buckets)
    return [by_id[number] for number in order]


def _insert(order: list[int], key: int, buckets: int) -> None:
    same = next((place for place, other in enumerate(order) if other % buckets == key % buckets), 0)
    order.insert(same, key)
