# SPDX-License-Identifier: GPL-2.0-or-later
"""What the search for throughput looks for, and how long: apart from the search, whose library is slow to import."""

from dataclasses import dataclass

#: Loss ratios of the goals: NDR (no packet lost: the throughput of RFC 1242) and PDR.
NDR, PDR = 0.0, 0.005
GOALS = (NDR, PDR)
#: Of the trials of a load that decide about it, this share may have more loss than the goal.
MAY_EXCEED = 0.5


@dataclass(frozen=True)
class SearchTerms:
    """How a search goes about it: seconds of a trial, seconds of all trials of a load that decide about it, how far the
    bounds of a goal lie apart at most, as a share, and seconds of a trial at the maximum offered load."""

    trial_s: float
    decided_s: float
    width: float
    flat_out_s: float


#: Settings for a class room: RFC 2544 wants trials of 60 s.
BY_HOST_CLOCK = SearchTerms(trial_s=1.0, decided_s=5.0, width=0.01, flat_out_s=1.0)
#: A load in the DUT's own time gives the same counts each time, so one trial decides. Seconds of the reference CPU.
BY_DUT_CLOCK = SearchTerms(trial_s=0.5, decided_s=0.5, width=0.002, flat_out_s=0.125)
#: Coarser searches before the last one.
COARSER = 2
#: Seconds for the whole search. A search without noise takes some 12 trials, one with much noise some 30.
BUDGET_S = 180.0

#: By loss ratio, lower and upper bound (pps); None where it was not found yet.
Bounds = dict[float, tuple[float | None, float | None]]
