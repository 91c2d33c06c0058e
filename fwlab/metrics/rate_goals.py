# SPDX-License-Identifier: GPL-2.0-or-later
"""What the search for throughput looks for, and how long: apart from the search, whose library is slow to import."""

#: Loss ratios of the goals: NDR (no packet lost: the throughput of RFC 1242) and PDR.
NDR, PDR = 0.0, 0.005
GOALS = (NDR, PDR)
#: Settings for a class room: RFC 2544 wants trials of 60 s. Bounds of a goal lie this far apart at most, as a share.
WIDTH = 0.01
#: Seconds of a trial, and of all trials of a load that decide about it; half of them may have more loss than the goal.
TRIAL_S, DECIDED_S, MAY_EXCEED = 1.0, 5.0, 0.5
#: Coarser searches before the last one.
COARSER = 2
#: Seconds for the whole search. A search without noise takes some 12 trials, one with much noise some 30.
BUDGET_S = 180.0

#: By loss ratio, lower and upper bound (pps); None where it was not found yet.
Bounds = dict[float, tuple[float | None, float | None]]
