# SPDX-License-Identifier: GPL-2.0-or-later
"""The field engine: applies a stream's program to its packet, for many frames at once.

Instructions run in order for every frame. Variables keep their values from one frame to the next.
"""

from collections.abc import Sequence

import numpy as np

from fwlab.traffic import checksums
from fwlab.traffic.frames import Frameset
from fwlab.traffic.program import (
    FixHw,
    FixIcmpv6,
    FixIpv4,
    Instruction,
    TrimSize,
    Write,
    WriteMask,
    reach,
)
from fwlab.traffic.variables import values

#: Bytes behind those that the program accesses that each frame stores for itself, since headers may become longer.
_SPARE = 60
#: A shorter tail is not worth storing separately from the heads.
_SHORTEST_TAIL = 64


def run(
    packet: bytes, instructions: Sequence[Instruction], count: int, *, seed: int, complete: bool, whole: bool
) -> Frameset:
    """The first `count` frames that a packet and its program yield.

    seed      of random variables
    complete  also do what TRex leaves to the network card (fix_checksum_hw)
    whole     store whole frames, without a shared tail

    The program must have passed program.check.
    """
    width = reach(packet, instructions) + _SPARE
    if whole or len(packet) - width < _SHORTEST_TAIL:
        width = len(packet)
    heads = np.repeat(np.frombuffer(packet[:width], dtype=np.uint8)[np.newaxis], count, axis=0)
    made = Frameset(heads, packet[width:], np.full(count, len(packet), dtype=np.int64))
    if not count:
        return made
    sizes = {name: size for ins in instructions for name, size in ins.declares().items()}
    variables = values(packet, instructions, count, seed)
    for ins in instructions:
        if isinstance(ins, Write):
            _write(heads, ins, variables[ins.name], sizes[ins.name])
        elif isinstance(ins, WriteMask):
            _write_mask(heads, ins, variables[ins.name], sizes[ins.name])
        elif isinstance(ins, TrimSize):
            wanted = variables[ins.name].astype(np.int64)
            made.lengths[:] = np.where(wanted == 0, len(packet), np.minimum(wanted, len(packet)))
        elif isinstance(ins, FixIpv4):
            checksums.fix_ipv4(heads, ins.pkt_offset)
        elif isinstance(ins, FixHw):
            checksums.prepare_hw(heads, ins.l2_len, *ins.transport(heads[0].tobytes()))
        elif isinstance(ins, FixIcmpv6):
            checksums.fix_icmpv6(heads, made.tail, ins.l2_len, ins.l2_len + ins.l3_len)
    for ins in instructions:
        if complete and isinstance(ins, FixHw):
            transport = ins.transport(heads[0].tobytes())
            checksums.complete_hw(heads, made.tail, made.lengths, ins.l2_len, *transport)
    return made


def _write(heads: np.ndarray, ins: Write, numbers: np.ndarray, size: int) -> None:
    """Write values + add_value, truncated to the variable's size in bytes."""
    numbers = numbers + np.uint64(ins.add_value & 0xFFFFFFFFFFFFFFFF)
    heads[:, ins.pkt_offset : ins.pkt_offset + size] = _bytes(numbers, size, ins.is_big_endian)


def _write_mask(heads: np.ndarray, ins: WriteMask, numbers: np.ndarray, size: int) -> None:
    """Write the masked bits of (value + add_value), shifted, and leave the packet's other bits unchanged.

    Arithmetic uses 32 bits. As in TRex, a big-endian write of an 8-byte variable uses its upper half, and a
    little-endian write has the variable's width.
    """
    if size == 8 and ins.is_big_endian:
        numbers = numbers >> np.uint64(32)
    numbers = (numbers + np.uint64(ins.add_value & 0xFFFFFFFF)) & np.uint64(0xFFFFFFFF)
    numbers = numbers << np.uint64(ins.shift) if ins.shift > 0 else numbers >> np.uint64(-ins.shift)
    width = ins.width(size)
    there = slice(ins.pkt_offset, ins.pkt_offset + width)
    mask = _bytes(np.array([ins.mask], dtype=np.uint64), width, ins.is_big_endian)
    heads[:, there] = (heads[:, there] & ~mask) | (_bytes(numbers, width, ins.is_big_endian) & mask)


def _bytes(numbers: np.ndarray, size: int, big: bool) -> np.ndarray:
    return numbers.astype(f"{'>' if big else '<'}u{size}").view(np.uint8).reshape(len(numbers), size)
