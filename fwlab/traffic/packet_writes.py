# SPDX-License-Identifier: GPL-2.0-or-later
"""The instructions that write a variable into the packet, for many frames at once."""

import numpy as np

from fwlab.traffic.instructions import Write, WriteMask

_DTYPE = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def write(heads: np.ndarray, ins: Write, values: np.ndarray, size: int) -> None:
    """Write values + add_value, truncated to the variable's size in bytes, at the instruction's offset."""
    numbers = values + np.uint64(ins.add_value & 0xFFFFFFFFFFFFFFFF)
    heads[:, ins.pkt_offset : ins.pkt_offset + size] = _bytes(numbers, size, ins.is_big_endian)


def write_mask(heads: np.ndarray, ins: WriteMask, values: np.ndarray, size: int) -> None:
    """Write the masked bits of (value + add_value), shifted, and leave the packet's other bits unchanged.

    Arithmetic uses 32 bits. As in TRex, a big-endian write of an 8-byte variable uses its upper half, and a
    little-endian write has the variable's width.
    """
    numbers = values
    if size == 8:
        numbers = values >> np.uint64(32) if ins.is_big_endian else values
        size = 4
    numbers = (numbers + np.uint64(ins.add_value & 0xFFFFFFFF)) & np.uint64(0xFFFFFFFF)
    if ins.shift > 0:
        numbers = (numbers << np.uint64(ins.shift)) & np.uint64(0xFFFFFFFF)
    elif ins.shift < 0:
        numbers = numbers >> np.uint64(-ins.shift)
    width = ins.pkt_cast_size if ins.is_big_endian else size
    there = slice(ins.pkt_offset, ins.pkt_offset + width)
    mask = _bytes(np.array([ins.mask], dtype=np.uint64), width, ins.is_big_endian)
    heads[:, there] = (heads[:, there] & ~mask) | (_bytes(numbers, width, ins.is_big_endian) & mask)


def _bytes(numbers: np.ndarray, size: int, big: bool) -> np.ndarray:
    order = ">" if big else "<"
    return numbers.astype(f"{order}{_DTYPE[size]}").view(np.uint8).reshape(len(numbers), size)
