# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of the DUT: which samples packets cause, and a model's counts by function."""

from collections import Counter
from collections.abc import Mapping, Sequence

from fwlab.model.trial import Counts

#: The address under which all programs are counted.
PROGRAMS = 0


def by_function(places: Mapping[int, Counts], names: Mapping[int, str]) -> dict[str, Counts]:
    """The sums of each count by name."""
    sums: dict[str, Counts] = {}
    for address, counts in places.items():
        total = sums.setdefault(names[address], dict.fromkeys(counts, 0))
        for count, value in counts.items():
            total[count] += value
    return sums


def of_packets(sampled: Mapping[str, int], serving: Sequence[str], others: tuple[str, ...]) -> dict[str, int]:
    """The stacks that packets cause, of stacks as the DUT's profiler reports them, program first.

    serving  functions in which the kernel begins to handle packets; their callers only show what the packets
             interrupted, so a packet's stack begins with one of these
    others   how the names of programs begin whose own time packets do not cause

    Kernel threads that work for packets (one that expires connections, say) count, too, and keep their name in front.
    """
    kept: Counter[str] = Counter()
    for stack, samples in sampled.items():
        program, *functions = stack.split(";")
        start = next((place for place, name in enumerate(functions) if name in serving), None)
        if start is not None:
            kept[";".join(functions[start:])] += samples
        elif not program.startswith(others):
            kept[stack] += samples
    return dict(kept)
