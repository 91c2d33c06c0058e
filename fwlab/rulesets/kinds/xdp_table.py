# SPDX-License-Identifier: GPL-2.0-or-later
"""xdp-table: tables of packets' fields that become an XDP program of ours (xdp_table_text.py reads them).

Whoever writes the tables chooses the data structures and the values, and no instruction.

The program copies the fields that a table asks for from the frame to its stack and tries the tables in order. A list is
code: one comparison after the other, with the entries' values in the instructions. The other structures are the
kernel's maps, looked up with one call. A frame that is not IPv4, or that no entry matches, passes. A packet without
ports (of another protocol than TCP and UDP, or a later fragment) matches no entry that asks for one.

The verifier follows every path. So no entry may leave it with different knowledge of a field than the entry before: a
field is compared in a copy (r0) unless the entry ends there.
"""

import errno
import os
import socket
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import partial

from fwlab.rulesets.kind import Call, DutShell, Faults, KernelView, Loader, Refusal, RulesetKind
from fwlab.rulesets.kinds import bpf
from fwlab.rulesets.kinds.lines import Fault
from fwlab.rulesets.kinds.xdp_table_text import FIELDS, VERDICTS, Range, Table, prefix_length, tables_in

#: What a map says of each of its entries; an array also has values that are no entries.
PRESENT = struct.pack("<I", 1)


def validate(lines: list[str]) -> Faults:
    """The first fault: what follows depends on it."""
    try:
        tables_in(lines)
    except Fault as fault:
        yield fault.args


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


#: Where the frame has the fields: Ethernet's header has 14 bytes, and that of IP 20 without options.
ETHERNET, IP = 14, 20
IPV4_TYPE, TCP, UDP = 0x0800, 6, 17
NO_PORT = -1
#: The stack lies below the register r10: each field at its place, then the key of a lookup.
SLOT = {name: -4 * (place + 1) for place, name in enumerate(FIELDS)}
KEY = 2 * SLOT["dport"]
#: Operations: "load" from memory, "store" to it; 32 bits each unless they say otherwise.
MOVE, MOVE_64, SET, CALL, EXIT, WIDE = 0xBC, 0xBF, 0xB4, 0x85, 0x95, 0x18
LOAD, LOAD_2, LOAD_1, STORE, STORE_VALUE = 0x61, 0x69, 0x71, 0x63, 0x62
ADD_64, ADD_VALUE_64, SUBTRACT, AND, XOR, SHIFT_LEFT, BIG_ENDIAN = 0x0F, 0x07, 0x14, 0x54, 0xA4, 0x64, 0xDC
UNLESS_EQUAL, IF_EQUAL, IF_ABOVE, IF_ABOVE_64, IF_ZERO_64 = 0x56, 0x16, 0x26, 0x2D, 0x15
MAP = 1  # in the place of a source register: the value is the open file of a map
LOOKUP = 1  # number of bpf_map_lookup_elem


def instruction(operation: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """One instruction. A value is the same to the kernel with and without a sign."""
    return struct.pack("<BBhI", operation, source << 4 | target, offset, value & 0xFFFFFFFF)


def program(tables: Sequence[Table], maps: Sequence[int | None]) -> bytes:
    """The program of these tables. `maps`: the open file of each table's map; None for a list."""
    asked = {name for table in tables for name in table.fields}
    code = [_read_header(asked)]
    if asked & {"sport", "dport"}:
        code.append(_read_ports())
    for table, opened in zip(tables, maps, strict=True):
        code.append(_list(table) if opened is None else _lookup(table, opened))
    return b"".join([*code, _end("pass")])


def _end(verdict: str) -> bytes:
    return instruction(SET, 0, value=VERDICTS[verdict]) + instruction(EXIT)


def _read_header(asked: set[str]) -> bytes:
    """r6 and r7 are the frame's begin and end. Frames that are no IPv4 pass at once."""
    code = [
        instruction(LOAD, 6, 1, 0),
        instruction(LOAD, 7, 1, 4),
        instruction(MOVE_64, 2, 6),
        instruction(ADD_VALUE_64, 2, value=ETHERNET + IP),
        instruction(IF_ABOVE_64, 2, 7, offset=3),
        instruction(LOAD_2, 0, 6, ETHERNET - 2),
        instruction(BIG_ENDIAN, 0, value=16),
        instruction(IF_EQUAL, 0, offset=2, value=IPV4_TYPE),
        _end("pass"),
    ]
    for name, offset in (("saddr", 12), ("daddr", 16)):
        if name in asked:
            code += [
                instruction(LOAD, 0, 6, ETHERNET + offset),
                instruction(BIG_ENDIAN, 0, value=32),
                instruction(STORE, 10, 0, SLOT[name]),
            ]
    if "protocol" in asked:
        code += [instruction(LOAD_1, 0, 6, ETHERNET + 9), instruction(STORE, 10, 0, SLOT["protocol"])]
    return b"".join(code)


def _read_ports() -> bytes:
    """r8 becomes the frame's begin plus the length of IP's header, which options make longer."""
    ports = [
        instruction(LOAD_1, 0, 6, ETHERNET),
        instruction(AND, 0, value=0x0F),
        instruction(SHIFT_LEFT, 0, value=2),
        instruction(MOVE_64, 8, 6),
        instruction(ADD_64, 8, 0),
        instruction(MOVE_64, 2, 8),
        instruction(ADD_VALUE_64, 2, value=ETHERNET + 4),
        instruction(IF_ABOVE_64, 2, 7, offset=6),
        instruction(LOAD_2, 0, 8, ETHERNET),
        instruction(BIG_ENDIAN, 0, value=16),
        instruction(STORE, 10, 0, SLOT["sport"]),
        instruction(LOAD_2, 0, 8, ETHERNET + 2),
        instruction(BIG_ENDIAN, 0, value=16),
        instruction(STORE, 10, 0, SLOT["dport"]),
    ]
    code = [
        *(instruction(STORE_VALUE, 10, offset=SLOT[name], value=NO_PORT) for name in ("sport", "dport")),
        instruction(LOAD_2, 0, 6, ETHERNET + 6),
        instruction(BIG_ENDIAN, 0, value=16),
        instruction(AND, 0, value=0x1FFF),  # where the fragment begins
        instruction(UNLESS_EQUAL, 0, offset=3 + len(ports)),
        instruction(LOAD_1, 0, 6, ETHERNET + 9),
        instruction(IF_EQUAL, 0, offset=1, value=TCP),
        instruction(UNLESS_EQUAL, 0, offset=len(ports), value=UDP),
    ]
    return b"".join([*code, *ports])


def _list(table: Table) -> bytes:
    """The fields go to r1, r2, …; then one entry follows the other."""
    registers = range(1, len(table.fields) + 1)
    loads = (
        instruction(LOAD, register, 10, SLOT[name]) for register, name in zip(registers, table.fields, strict=True)
    )
    end = _end(table.verdict)
    return b"".join([*loads, *(_listed(entry, end) for entry in table.entries)])


def _listed(entry: Sequence[Range], end: bytes) -> bytes:
    """Compare the fields; the first that differs jumps behind `end`."""
    code = end
    for register, values in reversed([*enumerate(entry, 1)]):
        code = _compared(register, values, len(code) // 8, last=code is end) + code
    return code


def _compared(register: int, values: Range, offset: int, *, last: bool) -> bytes:
    first, final = values
    if first == final and last:
        return instruction(UNLESS_EQUAL, register, offset=offset, value=first)
    copy = instruction(MOVE, 0, register)
    if first == final:
        return copy + instruction(XOR, 0, value=first) + instruction(UNLESS_EQUAL, 0, offset=offset)
    size = final - first + 1
    if prefix_length(values) is not None:  # of a port, too: any number of equal leading bits
        mask = instruction(AND, 0, value=-size)
        return copy + mask + instruction(UNLESS_EQUAL, 0, offset=offset, value=first)
    return copy + instruction(SUBTRACT, 0, value=first) + instruction(IF_ABOVE, 0, offset=offset, value=size - 1)


def _lookup(table: Table, opened: int) -> bytes:
    """Write the key, call the kernel, and go on behind the verdict if it finds nothing."""
    hit = _end(table.verdict)
    if table.structure == "array":  # every key has an entry; its value says whether it is in the table
        found = instruction(LOAD, 0, 0) + instruction(IF_EQUAL, 0, offset=len(hit) // 8) + hit
    else:
        found = hit
    return b"".join(
        [
            *_key(table),
            instruction(WIDE, 1, MAP, value=opened) + instruction(0),
            instruction(MOVE_64, 2, 10),
            instruction(ADD_VALUE_64, 2, value=KEY),
            instruction(CALL, value=LOOKUP),
            instruction(IF_ZERO_64, 0, offset=len(found) // 8),
            found,
        ]
    )


def _key(table: Table) -> Iterable[bytes]:
    if table.structure == "lpm":
        yield instruction(STORE_VALUE, 10, offset=KEY, value=32)
        yield instruction(LOAD, 0, 10, SLOT[table.fields[0]])
        yield instruction(BIG_ENDIAN, 0, value=32)
        yield instruction(STORE, 10, 0, KEY + 4)
        return
    for place, name in enumerate(table.fields):
        yield instruction(LOAD, 0, 10, SLOT[name])
        yield instruction(STORE, 10, 0, KEY + 4 * place)
