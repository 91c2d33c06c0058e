# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of the kernel's functions by address, modules and compiled BPF programs included."""

from collections.abc import Iterable, Sequence

SYMBOLS = "/proc/kallsyms"
#: Types of symbols that are code (nm).
CODE = "tTwW"
UNKNOWN = "[unknown]"


def names_of(addresses: Sequence[int], lines: Iterable[str] | None = None) -> list[str]:
    """The function that each address lies in. `addresses` are in ascending order; `lines` are those of SYMBOLS."""
    if lines is None:
        with open(SYMBOLS, encoding="ascii", errors="replace") as file:
            return names_of(addresses, file)
    found: list[tuple[int, str]] = []
    for line in lines:
        address, kind, name, *_ = line.split()
        if kind in CODE:
            found.append((int(address, 16), name))
    found.sort(key=lambda one: one[0])  # of several names at one address the first in the list stays first
    names, index, last = [], 0, (0, UNKNOWN)
    for wanted in addresses:
        while index < len(found) and found[index][0] <= wanted:
            if found[index][0] != last[0]:
                last = found[index]
            index += 1
        names.append(last[1])
    return names
