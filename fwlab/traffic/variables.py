# SPDX-License-Identifier: GPL-2.0-or-later
"""The values of field engine variables, packet after packet, as whole arrays.

`values(n)` returns the first n values and, for each, whether the variable wrapped around, which advances a variable
that depends on it: a uint64 and a bool array of shape (n,). `before` is the value before the first packet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fwlab.traffic import prng
from fwlab.traffic.instructions import FlowVar, RandLimit

_U64 = 0xFFFFFFFFFFFFFFFF


def move(low: int, high: int, current: int, step: int, up: bool) -> tuple[int, bool]:
    """One step within low..high, in 64-bit arithmetic. Returns the new value and whether it wrapped around."""
    left = ((high - current) if up else (current - low)) & _U64
    if step <= left:
        return (current + step if up else current - step) & _U64, False
    return (low + (step - left - 1) if up else high - (step - left - 1)) & _U64, True


@dataclass
class Range:
    """A position in low..high that steps up or down. Each step also includes `rounds` whole rounds."""

    low: int
    high: int
    start: int
    step: int
    up: bool = True
    rounds: int = 0

    @classmethod
    def make(cls, low: int, high: int, start: int, step: int, up: bool = True) -> Range:
        """The range that steps by `step`, which may be larger than the range."""
        size = high - low + 1
        return cls(low, high, start, step % size, up, step // size)

    @property
    def size(self) -> int:
        """How many values it has."""
        return self.high - self.low + 1

    def peek(self, steps: int, forward: bool, carry: bool = False) -> tuple[int, bool]:
        """The position `steps` after the start (or before it), and whether it wraps around on the way."""
        distance = (self.step * steps + int(carry)) % self.size
        return move(self.low, self.high, self.start, distance, self.up == forward)

    def turns(self, steps: int = 1) -> int:
        """How often so many steps wrap around."""
        return self.rounds * steps + (steps * self.step) // self.size

    def for_core(self, core: int, cores: int) -> None:
        """Take every `cores`-th value, starting with number `core`."""
        self.start = self.peek(core, forward=True)[0]
        whole = (self.rounds * self.size + self.step) * cores
        self.step, self.rounds = whole % self.size, whole // self.size


@dataclass
class RangeVariable:
    """A flow_var that counts up or down over a range."""

    range: Range
    bits: int

    @property
    def before(self) -> int:
        """The value before the first packet."""
        return self.range.peek(1, forward=False)[0] & self._mask

    @property
    def _mask(self) -> int:
        return (1 << self.bits) - 1

    def values(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The first `count` values, and where they wrapped around."""
        low, high, step = (v & self._mask for v in (self.range.low, self.range.high, self.range.step))
        span, first = high - low + 1, self.before
        offset = (first - low) if self.range.up else (high - first)
        if not low <= first <= high or step > span or span > _U64 or offset + step * count > _U64:
            return self._slowly(low, high, step, count)
        turns = np.uint64(offset) + np.uint64(step) * np.arange(1, count + 1, dtype=np.uint64)
        place = turns % np.uint64(span)
        values = np.uint64(low) + place if self.range.up else np.uint64(high) - place
        # the last position from which a step does not wrap around is span - 1 - step
        earlier = np.concatenate(([np.uint64(offset)], place[:-1]))[:count]
        return values, earlier + np.uint64(step) >= np.uint64(span)

    def _slowly(self, low: int, high: int, step: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The same, value by value, for ranges that the variable's width or the packet's length truncates."""
        values, wrapped = np.empty(count, dtype=np.uint64), np.empty(count, dtype=bool)
        current = self.before
        for i in range(count):
            left = (high - current) if self.range.up else (current - low)
            if self.bits >= 32:
                left &= self._mask
            wrapped[i] = left < step
            current = move(low, high, current, step, self.range.up)[0] & self._mask
            values[i] = current
        return values, wrapped


@dataclass
class ListVariable:
    """A flow_var that counts up or down over a list; `places` is the range of its indexes."""

    places: Range
    items: list[int]
    bits: int

    @property
    def before(self) -> int:
        """The value before the first packet."""
        return self.places.peek(1, forward=False)[0] & ((1 << self.bits) - 1)

    def values(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The first `count` values, and where they wrapped around."""
        size, step, first = len(self.items), self.places.step, self.places.start
        moves = step * np.arange(count, dtype=np.int64)
        index = (first + moves if self.places.up else first - moves) % size
        wrapped = index < step if self.places.up else index + step >= size
        return np.asarray(self.items, dtype=np.uint64)[index], wrapped


@dataclass
class RandomLimitVariable:
    """flow_var_rand_limit: `limit` pseudo-random values, repeated."""

    low: int
    high: int
    limit: int
    seed: int
    size: int
    before: int = 0

    def values(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The first `count` values, and where they wrapped around."""
        period, per = min(self.limit, max(count, 1)), prng.DRAWS[self.size]
        numbers = prng.combine(prng.draws(self.seed, period * per).reshape(period, per))
        turn = np.arange(count) % self.limit
        return prng.ranged(numbers, self.low, self.high)[turn % period], turn == 0

    def for_core(self, core: int, cores: int) -> None:
        """Take this core's share of the values, with a seed of its own."""
        self.seed *= ((core + 1) * 514229) & 0xFFFFFFFF
        self.limit = share(self.limit, core, cores)


@dataclass
class RandomVariable:
    """A random flow_var. Its values come from the stream's generator, which all its random variables share."""

    low: int
    high: int
    size: int
    items: list[int] = field(default_factory=list)
    before: int = 0

    @property
    def draws(self) -> int:
        """Number of draws per value."""
        return 1 if self.items else prng.DRAWS[self.size]

    def from_draws(self, parts: np.ndarray) -> np.ndarray:
        """Values from draws of shape (n, draws)."""
        numbers = prng.combine(parts)
        if self.items:
            return np.asarray(self.items, dtype=np.uint64)[(numbers % np.uint64(len(self.items))).astype(np.int64)]
        return prng.ranged(numbers, self.low, self.high)


#: Variables whose values do not depend on other variables.
SequenceVariable = RangeVariable | ListVariable | RandomLimitVariable
Variable = SequenceVariable | RandomVariable


def share(limit: int, core: int, cores: int) -> int:
    """A core's share of a limit: equal shares of at least one, with the remainder on the first core."""
    return max(limit // cores + (limit % cores if core == 0 else 0), 1)


def flow_var(ins: FlowVar, core: int, cores: int, longest: int | None) -> Variable:
    """The variable of a flow_var on one core. `longest`: the packet's length if the variable trims the packet."""
    up = ins.op != "dec"
    if ins.value_list is not None:
        last = len(ins.value_list) - 1
        if ins.op == "random":
            return RandomVariable(0, 0, ins.size, ins.value_list, before=last & ((1 << 8 * ins.size) - 1))
        places = Range.make(0, last, 0 if up else last, ins.step, up)
        if ins.split_to_cores and cores > 1:
            places.for_core(core, cores)
        return ListVariable(places, ins.value_list, 8 * ins.size)
    low, high = padded(ins)
    if ins.op == "random":
        low, high = trimmed(low, high, longest)
        return RandomVariable(low, high, ins.size, before=ins.first)
    variable = Range.make(low, high, ins.first, ins.step, up)
    if ins.split_to_cores and cores > 1:
        variable.for_core(core, cores)
    low, high = trimmed(low, high, longest)
    return RangeVariable(replace(variable, low=low, high=high), 8 * ins.size)


def padded(ins: FlowVar) -> tuple[int, int]:
    """The range extended to a multiple of the step: upwards when counting up, downwards when counting down."""
    low, high = ins.bounds
    missing = -(high - low + 1) % ins.step
    if ins.op == "inc":
        return low, min(high + missing, _U64)
    if ins.op == "dec":
        return max(low - missing, 0), high
    return low, high


def trimmed(low: int, high: int, longest: int | None) -> tuple[int, int]:
    """A range of packet lengths, limited to between the shortest frame and the packet's own length."""
    if longest is None:
        return low, high
    return max(min(low, longest), 60), min(high, longest)


def rand_limit(ins: RandLimit, core: int, cores: int) -> RandomLimitVariable:
    """The variable of a flow_var_rand_limit on one core."""
    variable = RandomLimitVariable(ins.min_value, ins.max_value, ins.limit, ins.seed, ins.size)
    if ins.split_to_cores and cores > 1:
        variable.for_core(core, cores)
    return variable
