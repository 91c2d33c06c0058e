# SPDX-License-Identifier: GPL-2.0-or-later
"""Executes the few instructions of BPF that our XDP programs use, on one frame.

Reading what was not written, reading the frame beyond what was compared with its end, a jump backwards and an operation
that is not known here raise, as the kernel's verifier would refuse them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

#: The bytes of a map's keys, and what it holds for a key: 4 bytes, or nothing.
Map = tuple[int, Callable[[bytes], bytes | None]]
#: One instruction: operation, both registers, offset, value.
Step = tuple[int, int, int, int]
#: Where the frame stands; its end is behind it. The stack ends at STACK.
FRAME, STACK, CONTEXT, VALUE = 0x10000, 0x8000, 0x100, 0x4000
MASK = 0xFFFFFFFF


class Machine:
    """One program, the maps that it may look up by their open files, and how many instructions the last run took."""

    def __init__(self, code: bytes, maps: Mapping[int, Map] | None = None) -> None:
        self.program: list[Step] = [struct.unpack_from("<BBhI", code, at) for at in range(0, len(code), 8)]
        self.maps = maps or {}
        self.executed = 0

    def verdict(self, frame: bytes) -> int:
        """What the program returns for this frame."""
        self.frame, self.value = frame, b""
        self.stack: dict[int, int] = {}
        self.readable = 0  # bytes of the frame that a comparison has shown to be there
        self.registers: dict[int, int] = {1: CONTEXT, 10: STACK}
        place = self.executed = 0
        while self.program[place][0] != 0x95:
            self.executed += 1
            place += 1 + self._step(*self.program[place], self.program[place + 1])
        return self.registers[0]

    def _step(self, operation: int, both: int, offset: int, value: int, following: Step) -> int:
        """Execute one instruction. Returns how many are skipped."""
        target, source = both & 15, both >> 4
        known = self.registers
        if operation == 0x18:
            assert source == 1, "only the file of a map"
            assert following == (0, 0, 0, 0)
            known[target] = value
            return 1
        if operation == 0x85:
            assert value == 1, "only lookups"
            found = self._looked_up(known[1], known[2])
            self.registers = {name: held for name, held in known.items() if name > 5} | {0: found}
        elif operation in (0x61, 0x69, 0x71):
            known[target] = self._loaded(known[source] + offset, {0x61: 4, 0x69: 2, 0x71: 1}[operation])
        elif operation in (0x63, 0x62):
            self._stored(known[target] + offset, known[source] & MASK if operation == 0x63 else value)
        elif operation in (0x56, 0x16, 0x26, 0x2D, 0x15):
            assert offset >= 0, "no loop"
            return offset * self._jumps(operation, known[target], source, value)
        else:
            known[target] = self._computed(operation, target, source, value)
        return 0

    def _computed(self, operation: int, target: int, source: int, value: int) -> int:
        if operation == 0xB4:
            return value
        if operation in (0xBC, 0xBF):
            return self.registers[source] & (MASK if operation == 0xBC else -1)
        before = self.registers[target]
        match operation:
            case 0xDC:
                return int.from_bytes((before % (1 << value)).to_bytes(value // 8, "little"), "big")
            case 0x0F:
                return before + self.registers[source]
            case 0x07:
                return before + value - (value >> 31 << 32)
            case 0x14:
                return before - value & MASK
            case 0x54:
                return before & value
            case 0xA4:
                return (before ^ value) & MASK
            case 0x64:
                return before << value & MASK
        raise AssertionError(f"an operation that no program of ours needs: {operation:#x}")

    def _jumps(self, operation: int, left: int, source: int, value: int) -> bool:
        if operation == 0x2D:
            assert self.registers[source] == FRAME + len(self.frame), "only the frame's end is compared"
            above = left > self.registers[source]
            self.readable = self.readable if above else max(self.readable, left - FRAME)
            return above
        if operation == 0x15:
            return left == value
        low = left & MASK
        return {0x56: low != value, 0x16: low == value, 0x26: low > value}[operation]

    def _loaded(self, address: int, size: int) -> int:
        if CONTEXT <= address < CONTEXT + 8:
            assert size == 4
            return {CONTEXT: FRAME, CONTEXT + 4: FRAME + len(self.frame)}[address]
        if STACK - 512 <= address < STACK:
            assert size == 4
            return self.stack[address]
        if VALUE <= address < VALUE + 4:
            return int.from_bytes(self.value[address - VALUE : address - VALUE + size], "little")
        begin = address - FRAME
        assert begin >= 0, "no memory of the program"
        assert begin + size <= self.readable, "the frame's end was not asked for"
        return int.from_bytes(self.frame[begin : begin + size], "little")

    def _stored(self, address: int, word: int) -> None:
        assert STACK - 512 <= address <= STACK - 4, "only the stack is written to"
        assert address % 4 == 0
        self.stack[address] = word

    def _looked_up(self, opened: int, key: int) -> int:
        width, look = self.maps[opened]
        found = look(b"".join(struct.pack("<I", self.stack[key + place]) for place in range(0, width, 4)))
        self.value = found or b""
        return 0 if found is None else VALUE
