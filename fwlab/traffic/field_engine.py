# SPDX-License-Identifier: GPL-2.0-or-later
"""The field engine: applies a stream's program to its packet, for many frames at once.

Instructions run in order for every frame. Variables keep their values from one frame to the next; one that is the
`next_var` of another advances only when that one wraps around, and chains may be of any length.
"""

from collections.abc import Sequence

import numpy as np

from fwlab.traffic import checksums
from fwlab.traffic.frames import Frameset
from fwlab.traffic.program import (
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
    trim_variable,
)

#: TRex's pseudo-random numbers: a linear congruential generator modulo 2^32. A draw is bits 16 to 30 of its state.
_MULTIPLIER, _INCREMENT = np.uint32(214013), np.uint32(2531011)
#: Number of draws for a number, by its size in bytes.
_DRAWS = {1: 1, 2: 1, 4: 2, 8: 4}
#: Where ports of a tuple without a limit go on after the highest.
_FIRST_PORT = 1025


def draws(seed: int, count: int) -> np.ndarray:
    """The next `count` 15-bit draws after `seed`: uint64 array of shape (count,)."""
    powers = np.full(count, _MULTIPLIER, dtype=np.uint32)
    np.multiply.accumulate(powers, out=powers, dtype=np.uint32)
    # state_i = m^i * seed + inc * (m^0 + ... + m^(i-1)), modulo 2^32
    sums = np.ones(count, dtype=np.uint32)
    np.add.accumulate(powers[:-1], out=sums[1:], dtype=np.uint32)
    sums[1:] += np.uint32(1)
    states = powers * np.uint32(seed & 0xFFFFFFFF) + sums * _INCREMENT
    return np.asarray(((states >> np.uint32(16)) & np.uint32(0x7FFF)).astype(np.uint64))


def ranged(numbers: np.ndarray, low: int, high: int) -> np.ndarray:
    """Map numbers into low..high, inclusive."""
    span = high - low + 1
    return numbers if span > 0xFFFFFFFFFFFFFFFF else np.uint64(low) + numbers % np.uint64(span)


def values(packet: bytes, instructions: Sequence[Instruction], count: int, seed: int) -> dict[str, np.ndarray]:
    """The values of each variable in the first `count` frames, by name: uint64 arrays of shape (count,).

    seed  of the random variables, which take their draws in turn from one generator
    """
    found: dict[str, np.ndarray] = {}
    drawn: list[tuple[FlowVar, np.ndarray]] = []
    trimming = trim_variable(instructions)
    moving = np.ones(count, dtype=bool)  # the frames in which the variable advances
    follower: str | None = None
    for ins in instructions:
        if isinstance(ins, TupleVar):
            found |= _tuple(ins, np.arange(count))
        if not isinstance(ins, FlowVar | RandLimit):
            continue
        if ins.name != follower:
            moving = np.ones(count, dtype=bool)
        follower = ins.next_var
        if isinstance(ins, FlowVar) and ins.op == "random":
            drawn.append((ins, moving))
            continue
        steps = np.cumsum(moving) - 1  # -1 before the variable first advances
        if isinstance(ins, RandLimit):
            found[ins.name], wrapped = _repeated(ins, steps)
        else:
            found[ins.name], wrapped = _counted(ins, steps, len(packet) if ins is trimming else None)
        moving = moving & wrapped
    return found | _random(drawn, seed, len(packet), trimming)


def _counted(ins: FlowVar, steps: np.ndarray, longest: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The values of a variable that counts, after these steps, and whether the last one wrapped around."""
    low, high = ins.range(longest)
    size, start = high - low + 1, 0
    if not ins.value_list:
        first = min(max(ins.init_value, low), high)
        start = high - first if ins.op == "dec" else first - low
    step = ins.step % size
    # Python's own integers are exact for 8 bytes, too, and fifty times as slow.
    exact = steps if size <= 1 << 32 else steps.astype(object)
    places = ((start + step * exact) % size).astype(np.uint64)
    wrapped = places < np.uint64(step)
    numbers = np.uint64(high) - places if ins.op == "dec" else np.uint64(low) + places
    if ins.value_list:
        numbers = np.array(ins.value_list, dtype=np.uint64)[numbers.astype(np.int64)]
    return numbers, wrapped


def _repeated(ins: RandLimit, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of a repeatable random variable after these steps, 0 before the first, and where it restarts."""
    period = min(ins.limit, len(steps))
    every = draws(ins.seed, period * _DRAWS[ins.size]).reshape(period, -1)
    numbers = ranged(_combined(every), ins.min_value, ins.max_value)
    turn = steps % ins.limit
    return np.where(steps < 0, np.uint64(0), numbers[turn % period]), turn == 0


def _tuple(ins: TupleVar, flow: np.ndarray) -> dict[str, np.ndarray]:
    """The clients of a tuple: the address advances with each flow, the port whenever the address wraps around."""
    clients, ports = ins.ip_max - ins.ip_min + 1, ins.port_max - ins.port_min + 1
    unlimited, number = ins.flags & 1, np.zeros(len(flow), dtype=np.int64)
    if ins.limit_flows and not unlimited:
        flow = flow % ins.limit_flows
        number = flow + 1
    port = ins.port_min + flow // clients % ports
    if unlimited:  # TRex begins behind the range
        port = ins.port_max + 1 + flow // clients
        port = np.where(port > 0xFFFF, _FIRST_PORT + (port - 0x10000) % (0x10000 - _FIRST_PORT), port)
    parts = {"ip": ins.ip_min + flow % clients, "port": port, "flow_limit": number}
    return {f"{ins.name}.{part}": numbers.astype(np.uint64) for part, numbers in parts.items()}


def _random(
    drawn: list[tuple[FlowVar, np.ndarray]], seed: int, longest: int, trimming: FlowVar | None
) -> dict[str, np.ndarray]:
    """The values of the random variables. They share a generator, frame by frame and in their order."""
    if not drawn:
        return {}
    needed = [1 if ins.value_list else _DRAWS[ins.size] for ins, _ in drawn]
    takes = np.stack([number * moving for number, (_, moving) in zip(needed, drawn, strict=True)], axis=1)
    ends = np.cumsum(takes).reshape(takes.shape)
    every, found = draws(seed, int(ends[-1, -1])), {}
    for column, (ins, moving) in enumerate(drawn):
        starts = ends[moving, column] - needed[column]
        numbers = _combined(every[starts[:, np.newaxis] + np.arange(needed[column])])
        low, high = ins.range(longest if ins is trimming else None)
        numbers, before = ranged(numbers, low, high), ins.init_value
        if ins.value_list:
            numbers, before = np.array(ins.value_list, dtype=np.uint64)[numbers.astype(np.int64)], high
        found[ins.name] = np.concatenate(([np.uint64(before)], numbers))[np.cumsum(moving)]
    return found


def _combined(parts: np.ndarray) -> np.ndarray:
    """Draws, in rows of 1, 2 or 4, as numbers of 15, 32 or 64 bits."""
    if parts.shape[1] == 1:
        return parts[:, 0]
    words: np.ndarray = ((parts[:, 0::2] << np.uint64(16)) + parts[:, 1::2]) & np.uint64(0xFFFFFFFF)
    return words[:, 0] if words.shape[1] == 1 else (words[:, 0] << np.uint64(32)) + words[:, 1]


def run(packet: bytes, instructions: Sequence[Instruction], count: int, *, seed: int, complete: bool) -> Frameset:
    """The first `count` frames that a packet and its program yield.

    seed      of random variables
    complete  also do what TRex leaves to the network card (fix_checksum_hw)

    The program must have passed program.check.
    """
    frames = np.repeat(np.frombuffer(packet, dtype=np.uint8)[np.newaxis], count, axis=0)
    made = Frameset(frames, np.full(count, len(packet), dtype=np.int64))
    if not count:
        return made
    sizes = {name: size for ins in instructions for name, size in ins.declares().items()}
    variables = values(packet, instructions, count, seed)
    for ins in instructions:
        if isinstance(ins, Write):
            _write(frames, ins, variables[ins.name], sizes[ins.name])
        elif isinstance(ins, WriteMask):
            _write_mask(frames, ins, variables[ins.name], sizes[ins.name])
        elif isinstance(ins, TrimSize):
            wanted = variables[ins.name].astype(np.int64)
            made.lengths[:] = np.where(wanted == 0, len(packet), np.minimum(wanted, len(packet)))
        elif isinstance(ins, FixIpv4):
            checksums.fix_ipv4(frames, ins.pkt_offset)
        elif isinstance(ins, FixHw):
            checksums.prepare_hw(frames, ins.l2_len, *ins.transport(frames[0].tobytes()))
        elif isinstance(ins, FixIcmpv6):
            checksums.fix_icmpv6(frames, ins.l2_len, ins.l2_len + ins.l3_len)
    for ins in instructions:
        if complete and isinstance(ins, FixHw):
            checksums.complete_hw(frames, made.lengths, ins.l2_len, *ins.transport(frames[0].tobytes()))
    return made


def _write(frames: np.ndarray, ins: Write, numbers: np.ndarray, size: int) -> None:
    """Write values + add_value, truncated to the variable's size in bytes."""
    numbers = numbers + np.uint64(ins.add_value & 0xFFFFFFFFFFFFFFFF)
    frames[:, ins.pkt_offset : ins.pkt_offset + size] = _bytes(numbers, size, ins.is_big_endian)


def _write_mask(frames: np.ndarray, ins: WriteMask, numbers: np.ndarray, size: int) -> None:
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
    frames[:, there] = (frames[:, there] & ~mask) | (_bytes(numbers, width, ins.is_big_endian) & mask)


def _bytes(numbers: np.ndarray, size: int, big: bool) -> np.ndarray:
    return numbers.astype(f"{'>' if big else '<'}u{size}").view(np.uint8).reshape(len(numbers), size)
