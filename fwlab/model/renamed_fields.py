# SPDX-License-Identifier: GPL-2.0-or-later
"""Fields that lab.yml does not have, or not there. The error message says what to write instead."""

_CASE = {"class": "victim_class", "tracked": "victim_class", "fill": "state_packets"}
#: By section of lab.yml: old name and new name.
_RENAMED = {
    "traffic": {"beside": "background", "beside_pps": "background_pps", "beside_flat_out": "background_flat_out"},
    "cases": _CASE,
    "sweeps": {**_CASE, "beside": "class_load"},
    "crossovers": {"behind": "slower", "ahead": "faster"},
    "exercises": {"fill": "state_packets"},
}
_IN_RANGES = "ranges.yml has the numbers; list the cases under `cases`, then run `make ranges LAB=LAB`"
#: By section: fields that have gone elsewhere, or that are there in another form.
_MISPLACED = {
    "cases": {"series": "this must be a list: what differs, case by case"},
    "sweeps": {"series": "this must be a list: what differs, sweep by sweep"},
    "needs": {"clock": "this field never had an effect; remove it"},
    "expectations": {
        "virtual": _IN_RANGES,
        "ratio": _IN_RANGES,
        "hosts": _IN_RANGES,
        "kernel": "ranges.yml has the kernel of each range; remove this field",
        "apart": "this is now reload_spread, a field of the case",
    },
}


def advice(place: tuple[str | int, ...]) -> str | None:
    """What to do about the unknown field at `place`, such as ("cases", 0, "fill"); None if nothing is known of it."""
    if place == ("crossings",):
        return "this field is now called crossovers"
    if len(place) < 2:
        return None
    section, field = str(place[0]), str(place[-1])
    if field in _RENAMED.get(section, {}):
        return f"this field is now called {_RENAMED[section][field]}"
    return _MISPLACED.get(section, {}).get(field)
