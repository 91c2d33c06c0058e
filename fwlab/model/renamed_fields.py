# SPDX-License-Identifier: GPL-2.0-or-later
"""Fields of lab.yml that have a new name. An old file gets the new name in its error message."""

from __future__ import annotations

#: By the section of lab.yml: old name and new name.
_RENAMED = {
    "traffic": {"beside": "background", "beside_pps": "background_pps", "beside_flat_out": "background_flat_out"},
    "cases": {"class": "victim_class", "tracked": "victim_class", "fill": "state_packets"},
    "sweeps": {
        "class": "victim_class",
        "tracked": "victim_class",
        "fill": "state_packets",
        "beside": "class_load",
    },
    "exercises": {"fill": "state_packets"},
    "expectations": {"apart": "reload_spread, a field of the case"},
}


def new_name(place: tuple[str | int, ...]) -> str | None:
    """The name that replaces the last part of `place` (a path such as ("cases", 0, "fill")); None if there is none."""
    return _RENAMED.get(str(place[0]), {}).get(str(place[-1])) if len(place) > 1 else None
