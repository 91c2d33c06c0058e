# SPDX-License-Identifier: GPL-2.0-or-later
"""What a model of a core counted by address, added up by function. Pure."""

from collections.abc import Mapping

from fwlab.model.trial import Counts

#: The address that stands for all programs.
PROGRAMS = 0


def by_function(places: Mapping[int, Counts], names: Mapping[int, str]) -> dict[str, Counts]:
    """The sums of each count by name."""
    sums: dict[str, Counts] = {}
    for address, counts in places.items():
        total = sums.setdefault(names[address], dict.fromkeys(counts, 0))
        for count, value in counts.items():
            total[count] += value
    return sums
