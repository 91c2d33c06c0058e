# SPDX-License-Identifier: GPL-2.0-or-later
"""Marks the beginning and the end of a trial for a model of a core (coresim) that watches this machine.

A mark is a NOP of eight bytes whose displacement names it. Without a model it has no effect.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import struct
from collections.abc import Iterator

BEGIN, END = 0x4D574601, 0x4D574602
NOP, RETURN = bytes([0x0F, 0x1F, 0x84, 0x00]), bytes([0xC3])
#: Each function begins at a multiple of this.
APART = 64


class Marks:
    """Functions that execute the marks; without any, they do nothing."""

    def __init__(self, page: mmap.mmap | None = None) -> None:
        self._page = page  # mapped as long as there are functions that point into it
        self._functions = []
        if page is not None:
            start = ctypes.addressof(ctypes.c_char.from_buffer(page))
            for number, value in enumerate((BEGIN, END)):
                code = NOP + struct.pack("<I", value) + RETURN
                page[number * APART : number * APART + len(code)] = code
                self._functions.append(ctypes.CFUNCTYPE(None)(start + number * APART))

    def begin(self) -> None:
        """A trial begins."""
        if self._functions:
            self._functions[0]()

    def end(self) -> None:
        """It ends."""
        if self._functions:
            self._functions[1]()


@contextlib.contextmanager
def marks(wanted: bool) -> Iterator[Marks]:
    """Marks that are executed if they are `wanted`."""
    if not wanted:
        yield Marks()
        return
    yield Marks(mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC))
