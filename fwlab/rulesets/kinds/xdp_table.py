# SPDX-License-Identifier: GPL-2.0-or-later
"""xdp-table: tables of packets' fields that become an XDP program of ours (xdp_table_text.py, xdp_table_program.py).

Whoever writes the tables chooses the data structures and the values, and no instruction.
"""

import errno
import os
import socket
import struct
import zlib
from collections.abc import Sequence
from functools import partial

from fwlab.rulesets.kind import Call, DutShell, Faults, KernelView, Loader, Refusal, RulesetKind
from fwlab.rulesets.kinds import bpf
from fwlab.rulesets.kinds.xdp_table_program import program
from fwlab.rulesets.kinds.xdp_table_text import FIELDS, Fault, Table, prefix_length, tables_in

#: What a map says of each of its entries; an array also has values that are no entries.
PRESENT = struct.pack("<I", 1)


def validate(lines: list[str]) -> Faults:
    """The first fault: what follows depends on it."""
    try:
        tables_in(lines)
    except Fault as fault:
        number, what, how = fault.args
        yield number, what, how


def by_device(tables: Sequence[Table]) -> dict[str, list[Table]]:
    """One program runs on a device."""
    found: dict[str, list[Table]] = {}
    for table in tables:
        found.setdefault(table.device, []).append(table)
    return found


def name_of(tables: Sequence[Table]) -> str:
    """The name of their program. It differs if the tables do."""
    meaning = repr([(table.structure, table.fields, table.verdict, table.entries) for table in tables])
    return f"fwlab_{zlib.crc32(meaning.encode()):08x}"


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """Devices without the program of their tables."""
    wanted = by_device(tables_in(lines))
    status = shown.run("xdp-loader status") if wanted else ""
    running = {tuple(line.split()[:2]) for line in status.splitlines()}
    missing = [device for device, tables in wanted.items() if (device, name_of(tables)) not in running]
    return f"the program of {', '.join(missing)}" if missing else None


def _packed(table: Table) -> list[bytes]:
    """The keys of a map, as the program looks them up."""
    if table.structure == "array":
        keys = {value for [(first, last)] in table.entries for value in range(first, last + 1)}
        return [struct.pack("<I", key) for key in sorted(keys)]
    if table.structure == "lpm":
        return [struct.pack("<I4s", prefix_length(one) or 0, one[0].to_bytes(4, "big")) for [one] in table.entries]
    return [struct.pack(f"<{len(entry)}I", *(first for first, _ in entry)) for entry in table.entries]


class XdpTableLoader(Loader):
    """Loads and attaches the programs. They go with the open files that hold them, so also with the agent."""

    def __init__(self, machine: DutShell) -> None:
        super().__init__(machine)
        self._opened: list[int] = []
        self._entries = 0

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        """One call for each device: fill the maps, have the program verified and compiled, attach it.

        The instructions are not made in that call: its time is the kernel's, as it would be with a compiled file.
        """
        if each:
            list(self.one_by_one(name, text))
        try:
            tables = tables_in(text.split("\n"))
        except Fault as fault:
            number, what, how = fault.args
            raise Refusal(f"{name}:{number}: {what}; {how}") from fault
        return [partial(self._load, name, device, chosen) for device, chosen in by_device(tables).items()]

    def _load(self, name: str, device: str, tables: list[Table]) -> None:
        try:
            maps = [self._filled(table) for table in tables]
            loaded = self._kept(bpf.load_xdp(program(tables, maps), name_of(tables)))
            self._kept(bpf.attach_xdp(loaded, socket.if_nametoindex(device)))
        except OSError as error:
            there = error.errno in (errno.EBUSY, errno.EEXIST)
            said = "there is an XDP program already" if there else error.strerror or str(error)
            raise Refusal(f"{name}: the kernel did not accept the program for {device}: {said}") from error
        self._entries += sum(len(table.entries) for table in tables)

    def _filled(self, table: Table) -> int | None:
        """A map with the entries of the table; None for a list, which is code."""
        if table.structure == "list":
            return None
        keys = _packed(table)
        if table.structure == "array":
            opened = bpf.new_map(bpf.ARRAY, 4, len(PRESENT), 1 << FIELDS[table.fields[0]], 0)
        elif table.structure == "lpm":
            opened = bpf.new_map(bpf.LPM_TRIE, len(keys[0]), len(PRESENT), len(keys), bpf.NO_PREALLOC)
        else:  # always with the same seed, so that the figures of two runs agree
            opened = bpf.new_map(bpf.HASH, len(keys[0]), len(PRESENT), len(keys), bpf.ZERO_SEED)
        bpf.fill(self._kept(opened), b"".join(keys), PRESENT * len(keys), len(keys))
        return opened

    def _kept(self, opened: int) -> int:
        self._opened.append(opened)
        return opened

    def undo(self, loaded: bool) -> None:
        while self._opened:  # the link first: then no packet runs the program
            os.close(self._opened.pop())
        self._entries = 0

    def entries(self) -> int:
        return self._entries


KIND = RulesetKind(
    name="xdp-table",
    suffix=".xdp-table",
    position=75,
    validate=validate,
    loader=XdpTableLoader,
    missing_from_kernel=missing_from_kernel,
)
