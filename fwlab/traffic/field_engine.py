# SPDX-License-Identifier: GPL-2.0-or-later
"""The field engine: what a stream's instructions make of its packet, for many frames at once.

Instructions run in their order for every frame. Variables keep their value from one frame to the next; one
that is another's `next_var` moves only when that one has gone round, and so do all behind it."""

from __future__ import annotations

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
from fwlab.traffic.variables import RandomVariable, Variable, flow_var, rand_limit


@dataclass
class Values:
    """One variable's values, one per frame, before and after its own instruction ran."""

    size: int
    index: int
    first: int
    after: np.ndarray

    def seen_by(self, index: int) -> np.ndarray:
        """What an instruction at that place reads: the frame before's value if the variable moves later."""
        if index > self.index or not len(self.after):
            return self.after
        return np.concatenate(([np.uint64(self.first)], self.after[:-1]))


@dataclass
class Frameset:
    """Frames made from one packet: heads (rows, width) that differ, the tail they share, each one's
    length."""

    heads: np.ndarray
    tail: bytes
    lengths: np.ndarray

    def frame(self, row: int) -> bytes:
        return (self.heads[row].tobytes() + self.tail)[: self.lengths[row]]


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
    """The first `count` frames of a packet with its instructions, on one of `cores` cores that share the
    stream.

    `complete` also does what TRex leaves to the network card (fix_checksum_hw). `whole` keeps no shared tail.
    Instructions must have passed fieldcheck.check.
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
    """Where the transport header begins and its protocol. IPv4 says the latter itself (and with l4_type IP
    also how long it is); for IPv6, behind extension headers, the instruction does."""
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
    drawn: list[tuple[str, RandomVariable, np.ndarray, Values]] = []
    moving: np.ndarray | None = None  # which frames the next variable of a chain moves in; None: all
    expected: str | None = None
    for index, ins in enumerate(instructions):
        if isinstance(ins, TupleVar):
            variable = tuple_var(ins, core, cores)
            series, first = variable.values(count), variable.before
            for part, size in (("ip", 4), ("port", 2), ("flow_limit", 4)):
                variables[f"{ins.name}.{part}"] = Values(size, index, first[part], series[part])
        if not isinstance(ins, FlowVar | RandLimit):
            continue
        if expected != ins.name:
            moving = None
        if isinstance(ins, FlowVar):
            variable = flow_var(ins, core, cores, len(packet) if ins.name == trimming else None)
        else:
            variable = rand_limit(ins, core, cores)
        values = Values(ins.size, index, variable.before, np.empty(0, dtype=np.uint64))
        variables[ins.name] = values
        if isinstance(variable, RandomVariable):
            drawn.append((ins.name, variable, np.ones(count, dtype=bool) if moving is None else moving, values))
            moving = None
        else:
            values.after, moving = _moved(variable, count, moving)
        expected = ins.next_var
    _draw(drawn, count, seed)
    return variables


def _moved(variable: Variable, count: int, moving: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """A walk's values where it moves only in some frames, and in which of them it went round."""
    if moving is None:
        return variable.values(count)
    steps = np.cumsum(moving)
    series, wrapped = variable.values(int(steps[-1]))
    after = np.concatenate(([np.uint64(variable.before)], series))[steps]
    went_round = np.concatenate(([False], wrapped))[steps] & moving
    return after, went_round


def _draw(drawn: list[tuple[str, RandomVariable, np.ndarray, Values]], count: int, seed: int) -> None:
    """Random variables take turns at the stream's one generator, frame by frame in their order."""
    if not drawn:
        return
    takes = np.stack([variable.draws * moving.astype(np.int64) for _, variable, moving, _ in drawn], axis=1)
    ends = np.cumsum(takes.ravel()).reshape(takes.shape)
    stream = prng.draws(seed, int(ends[-1, -1]))
    for column, (_, variable, moving, values) in enumerate(drawn):
        starts = ends[moving, column] - variable.draws
        series = variable.from_draws(stream[starts[:, np.newaxis] + np.arange(variable.draws)])
        steps = np.cumsum(moving)
        values.after = np.concatenate(([np.uint64(variable.before)], series.astype(np.uint64)))[steps]
