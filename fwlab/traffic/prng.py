# SPDX-License-Identifier: GPL-2.0-or-later
"""The pseudo-random number generator of TRex's field engine, vectorised.

It is the well-known linear congruential generator with multiplier 214013 and increment 2531011 modulo 2^32; each draw
is bits 16 to 30 of the state. Wider numbers combine several draws.
"""

import numpy as np

_MULTIPLIER = np.uint32(214013)
_INCREMENT = np.uint32(2531011)

#: Number of draws that make a number of so many bytes.
DRAWS = {1: 1, 2: 1, 4: 2, 8: 4}


def draws(seed: int, count: int) -> np.ndarray:
    """The next `count` 15-bit draws after `seed`: uint64 array of shape (count,)."""
    powers = np.full(count, _MULTIPLIER, dtype=np.uint32)
    np.multiply.accumulate(powers, out=powers, dtype=np.uint32)
    # state_i = m^i * seed + inc * (m^0 + ... + m^(i-1)), modulo 2^32
    sums = np.empty(count, dtype=np.uint32)
    if count:
        sums[0] = 1
        np.add.accumulate(powers[:-1], out=sums[1:], dtype=np.uint32)
        sums[1:] += np.uint32(1)
    states = powers * np.uint32(seed & 0xFFFFFFFF) + sums * _INCREMENT
    return np.asarray(((states >> np.uint32(16)) & np.uint32(0x7FFF)).astype(np.uint64))


def combine(parts: np.ndarray) -> np.ndarray:
    """Combine draws into numbers: shape (n, 1) into 15 bits, (n, 2) into 32 bits, (n, 4) into 64 bits."""
    if parts.shape[1] == 1:
        return parts[:, 0]
    words: np.ndarray = ((parts[:, 0::2] << np.uint64(16)) + parts[:, 1::2]) & np.uint64(0xFFFFFFFF)
    return words[:, 0] if words.shape[1] == 1 else (words[:, 0] << np.uint64(32)) + words[:, 1]


def ranged(numbers: np.ndarray, low: int, high: int) -> np.ndarray:
    """Map numbers into low..high, inclusive."""
    span = high - low + 1
    return numbers if span > 0xFFFFFFFFFFFFFFFF else np.uint64(low) + numbers % np.uint64(span)
