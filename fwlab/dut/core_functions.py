# SPDX-License-Identifier: GPL-2.0-or-later
"""What a model of a core counted by address, added up by function. Pure."""

from collections.abc import Mapping

from fwlab.model.trial import Spent

#: The address that stands for all programs.
PROGRAMS = 0


def by_function(places: Mapping[int, Spent], names: Mapping[int, str]) -> dict[str, Spent]:
    """The sums by name, most cycles of waiting first."""
    sums: dict[str, dict[str, int]] = {}
    for address, spent in places.items():
        total = sums.setdefault(names[address], dict.fromkeys(Spent.model_fields, 0))
        for field in total:
            total[field] += getattr(spent, field)
    found = {name: Spent(**total) for name, total in sums.items()}
    return dict(sorted(found.items(), key=lambda one: (-one[1].waits, one[0])))
