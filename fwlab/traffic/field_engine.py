# SPDX-License-Identifier: GPL-2.0-or-later
"""The field engine: applies a stream's instructions to its packet, for many frames at once.

Instructions run in order for every frame. Variables keep their values from one frame to the next. A variable that is
the `next_var` of another one advances only when that one wraps around; chains may be of any length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fwlab.traffic import checksums, packet_writes, prng
from fwlab.traffic.field_check import FURTHEST_TAIL, touched, trim_variable
from fwlab.traffic.instructions import (
    FixHw,
    FixIcmpv6,
    FixIpv4,
    FlowVar,
    Instruction,
    RandLimit,
    TrimSize,
    TupleVar,
    Write,
    WriteMask,
)
from fwlab.traffic.tuples import tuple_var
from fwlab.traffic.variables import RandomVariable, SequenceVariable, Variable, flow_var, rand_limit


@dataclass
class Values:
    """The values of one variable, one per frame.

    size   bytes
    index  position of the instruction that advances the variable
    first  value before the first frame
    after  values after that instruction has run: uint64 array of shape (frames,)
    """

    size: int
    index: int
    first: int
    after: np.ndarray

    def seen_by(self, index: int) -> np.ndarray:
        """The values that the instruction at `index` reads; the previous frame's if the variable advances later."""
        if index > self.index or not len(self.after):
            return self.after
        return np.concatenate(([np.uint64(self.first)], self.after[:-1]))


@dataclass
class Frameset:
    """Frames made from one packet.

    heads    leading bytes, which differ: uint8 array of shape (rows, width)
    tail     the bytes that follow in every frame
    lengths  bytes of each frame: int64 array of shape (rows,)
    """

    heads: np.ndarray
    tail: bytes
    lengths: np.ndarray

    def frame(self, row: int) -> bytes:
        """The frame in that row, without frame check sequence."""
        head: bytes = self.heads[row].tobytes()
        return (head + self.tail)[: int(self.lengths[row])]


def run(
    packet: bytes,
    instructions: Sequence[Instruction],
    count: int,
    *,
    core: int = 0,
    cores: int = 1,
    seed: int = 0,
    complete: bool = False,
    whole: bool = False,
) -> Frameset:
    """The first `count` frames that a packet and its instructions yield on one of the cores that share the stream.

    core, cores  this core's number, and the number of cores
    seed         seed of the stream's random variables
    complete     also do what TRex leaves to the network card (fix_checksum_hw)
    whole        store whole frames, without a shared tail

    The instructions must have passed field_check.check.
    """
    width = len(packet) if whole else min(touched(instructions), len(packet))
    if len(packet) - width < FURTHEST_TAIL:
        width = len(packet)
    head = np.frombuffer(packet[:width], dtype=np.uint8)
    heads = np.repeat(head[np.newaxis], count, axis=0)
    made = Frameset(heads, packet[width:], np.full(count, len(packet), dtype=np.int64))
    if not count:
        return made
    variables = _variables(packet, instructions, count, core, cores, seed)
    for index, ins in enumerate(instructions):
        _apply(made, ins, index, variables)
    if complete:
        for ins in instructions:
            if isinstance(ins, FixHw):
                l4, protocol = _transport(made.heads, ins)
                checksums.complete_hw(made.heads, made.tail, made.lengths, ins.l2_len, l4, protocol)
    return made


def _apply(made: Frameset, ins: Instruction, index: int, variables: dict[str, Values]) -> None:
    if isinstance(ins, Write):
        variable = variables[ins.name]
        packet_writes.write(made.heads, ins, variable.seen_by(index), variable.size)
    elif isinstance(ins, WriteMask):
        variable = variables[ins.name]
        packet_writes.write_mask(made.heads, ins, variable.seen_by(index), variable.size)
    elif isinstance(ins, TrimSize):
        wanted = variables[ins.name].seen_by(index).astype(np.int64)
        longest = made.heads.shape[1] + len(made.tail)
        made.lengths[:] = np.where(wanted == 0, longest, np.minimum(wanted, longest))
    elif isinstance(ins, FixIpv4):
        checksums.fix_ipv4(made.heads, ins.pkt_offset)
    elif isinstance(ins, FixHw):
        checksums.prepare_hw(made.heads, ins.l2_len, *_transport(made.heads, ins))
    elif isinstance(ins, FixIcmpv6):
        checksums.fix_icmpv6(made.heads, made.tail, ins.l2_len, ins.l2_len + ins.l3_len)


def _transport(heads: np.ndarray, ins: FixHw) -> tuple[int, int]:
    """Offset and protocol of the transport header.

    An IPv4 header states the protocol (and, with l4_type IP, its own length). For IPv6, which may have extension
    headers, the instruction states both.
    """
    header = heads[0, ins.l2_len :]
    if int(header[0]) >> 4 != 4:
        return ins.l2_len + ins.l3_len, checksums.TCP if ins.l4_type == 13 else checksums.UDP
    length = (int(header[0]) & 0x0F) * 4 if ins.l4_type == 17 else ins.l3_len
    return ins.l2_len + length, int(header[9])


def _variables(
    packet: bytes, instructions: Sequence[Instruction], count: int, core: int, cores: int, seed: int
) -> dict[str, Values]:
    variables: dict[str, Values] = {}
    trimming = trim_variable(instructions)
    drawn: list[tuple[RandomVariable, np.ndarray, Values]] = []
    moving: np.ndarray | None = None  # the frames in which the next variable of a chain advances; None: all
    expected: str | None = None
    for index, ins in enumerate(instructions):
        if isinstance(ins, TupleVar):
            clients = tuple_var(ins, core, cores)
            series, first = clients.values(count), clients.before
            for part, size in (("ip", 4), ("port", 2), ("flow_limit", 4)):
                variables[f"{ins.name}.{part}"] = Values(size, index, first[part], series[part])
        if not isinstance(ins, FlowVar | RandLimit):
            continue
        if expected != ins.name:
            moving = None
        variable: Variable
        if isinstance(ins, FlowVar):
            variable = flow_var(ins, core, cores, len(packet) if ins.name == trimming else None)
        else:
            variable = rand_limit(ins, core, cores)
        values = Values(ins.size, index, variable.before, np.empty(0, dtype=np.uint64))
        variables[ins.name] = values
        if isinstance(variable, RandomVariable):
            drawn.append((variable, np.ones(count, dtype=bool) if moving is None else moving, values))
            moving = None
        else:
            values.after, moving = _advance(variable, count, moving)
        expected = ins.next_var
    _draw(drawn, seed)
    return variables


def _advance(variable: SequenceVariable, count: int, moving: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The values of a variable that advances only in some frames, and the frames in which it wraps around."""
    if moving is None:
        return variable.values(count)
    steps = np.cumsum(moving)
    series, wrapped = variable.values(int(steps[-1]))
    after = np.concatenate(([np.uint64(variable.before)], series))[steps]
    wrapped_in = np.concatenate(([False], wrapped))[steps] & moving
    return after, wrapped_in


def _draw(drawn: list[tuple[RandomVariable, np.ndarray, Values]], seed: int) -> None:
    """Draw the random variables' values from the stream's one generator, which they share frame by frame, in order."""
    if not drawn:
        return
    takes = np.stack([variable.draws * moving.astype(np.int64) for variable, moving, _ in drawn], axis=1)
    ends = np.cumsum(takes.ravel()).reshape(takes.shape)
    stream = prng.draws(seed, int(ends[-1, -1]))
    for column, (variable, moving, values) in enumerate(drawn):
        starts = ends[moving, column] - variable.draws
        series = variable.from_draws(stream[starts[:, np.newaxis] + np.arange(variable.draws)])
        steps = np.cumsum(moving)
        values.after = np.concatenate(([np.uint64(variable.before)], series.astype(np.uint64)))[steps]
