# SPDX-License-Identifier: GPL-2.0-or-later
"""Expands streams into frames exactly as TRex sends them. Pure: no I/O."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwlab.model.errors import BadInput
from fwlab.traffic import field_check, field_engine
from fwlab.traffic.cores import Task, distribute, table_order
from fwlab.traffic.field_engine import Frameset
from fwlab.traffic.frames import Frames, merge
from fwlab.traffic.instructions import TupleVar
from fwlab.traffic.packet_setup import SIMULATOR_MACS, Prepared, prepare
from fwlab.traffic.schedule import schedule
from fwlab.traffic.streams import Stream, parse_streams

#: The default packet limit of TRex's simulator.
DEFAULT_LIMIT = 5000
MOST_CORES = 64
_SEED_FACTOR = 514229


def expand(
    streams: Sequence[Any],
    *,
    limit: int,
    cores: int = 1,
    macs: tuple[bytes, bytes] = SIMULATOR_MACS,
    complete: bool = False,
    seed: int = 1,
) -> Frames:
    """The first `limit` frames of a profile's streams (each as returned by `stream.to_json()`), in sending order.

    cores          number of TRex cores that share the work
    macs           destination and source MAC address of streams without their own
    complete       also do what TRex leaves to the network card (fix_checksum_hw), for other engines
    seed           seed of random variables in streams without a random_seed

    Raises BadInput naming the stream and the instruction.
    """
    if limit < 1:
        raise BadInput(f"invalid limit {limit}: must be at least 1", "give --limit a number above zero")
    if not 1 <= cores <= MOST_CORES:
        raise BadInput(
            f"invalid number of cores {cores}: must be from 1 to {MOST_CORES}", f"give --cores 1 to {MOST_CORES}"
        )
    parsed = parse_streams(streams)
    for stream in parsed:
        field_check.check(stream.data, stream.instructions, stream.label)
        _check_cores(stream, cores)
    prepared = prepare(table_order(parsed), macs)
    builder = _Builder(prepared, complete, seed)
    per_core = []
    for core, tasks in enumerate(distribute(parsed, cores)):
        quota = max(1, limit // cores) + (limit % cores if core == 0 else 0)
        per_core.append(builder.play(core, tasks, quota))
    times, part, row = merge(per_core)
    owners = np.array(builder.owners, dtype=np.int64)
    labels, names = [stream.label for stream in parsed], [stream.name for stream in parsed]
    return Frames(times, part, row, builder.parts, owners, labels, names)


def _check_cores(stream: Stream, cores: int) -> None:
    for number, ins in enumerate(stream.instructions, start=1):
        if isinstance(ins, TupleVar) and 0 < ins.limit_flows < cores:
            raise BadInput(
                f"{stream.label}, instruction {number}: limit_flows {ins.limit_flows} is less than the {cores} cores",
                "allow at least one flow per core",
            )


class _Builder:
    """Collects the framesets of all tasks on all cores."""

    def __init__(self, prepared: dict[int, Prepared], complete: bool, seed: int) -> None:
        self.parts: list[Frameset] = []
        self.owners: list[int] = []
        self._prepared, self._complete, self._seed = prepared, complete, seed

    def play(self, core: int, tasks: list[Task], limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One core's frames: (times_ns, part, row), int64 arrays."""
        seconds, numbers = schedule(tasks, limit)
        first = len(self.parts)
        row = np.zeros(len(numbers), dtype=np.int64)
        for number, task in enumerate(tasks):
            turns = np.flatnonzero(numbers == number)
            rows = _rows(task, len(turns))
            row[turns] = rows
            count = int(rows.max()) + 1 if len(rows) and task.active else 0
            self.parts.append(self._make(core, task, count))
            self.owners.append(task.stream.index)
        sent = np.array([task.active for task in tasks], dtype=bool)[numbers] if len(tasks) else numbers == 0
        whole = np.floor(seconds[sent])
        times = whole.astype(np.int64) * 1_000_000_000 + np.floor((seconds[sent] - whole) * 1e9).astype(np.int64)
        return times, numbers[sent] + first, row[sent]

    def _make(self, core: int, task: Task, count: int) -> Frameset:
        stream, ready = task.stream, self._prepared[task.stream.index]
        seed = (stream.random_seed or self._seed + stream.index) * ((core + 1) * _SEED_FACTOR)
        made = field_engine.run(
            ready.packet,
            stream.instructions,
            count,
            core=task.share,
            cores=task.shared_by,
            seed=seed & 0xFFFFFFFF,
            complete=self._complete,
            whole=bool(ready.trailer),
        )
        if ready.trailer:
            stamp = np.frombuffer(ready.trailer, dtype=np.uint8)
            columns = made.lengths[:, np.newaxis] - len(stamp) + np.arange(len(stamp))
            made.heads[np.arange(count)[:, np.newaxis], columns] = stamp
        return made


def _rows(task: Task, turns: int) -> np.ndarray:
    """The frameset row that each turn sends: the first without a field engine, cyclic with a cache."""
    if not task.stream.instructions:
        return np.zeros(turns, dtype=np.int64)
    return np.arange(turns, dtype=np.int64) % (task.cache or max(turns, 1))
