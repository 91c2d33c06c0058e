# SPDX-License-Identifier: GPL-2.0-or-later
"""Pacing: an exact load in the DUT's own time, on the virtual testbed.

QEMU counts the DUT's instructions, and its timers can run by that clock. So QEMU itself divides the DUT's time into
ticks. A network filter (filter-buffer) holds whatever arrives at the DUT's first NIC and releases it at each tick, at
the same instruction on every host. A second one, on a network device that no guest sees, releases one packet at each
tick: the sign that the next tick's frames are due. Two recorders (filter-dump) note every frame that enters and leaves
the DUT, with the time of the DUT's clock. The DUT runs none of this and pays for none of it, and no ruleset can touch
it.

player.py     the program that sends each tick's frames, and keeps the DUT's clock from running ahead of it
wires.py      the filters on the DUT's links, attached for one play through QEMU's monitor
paced_load.py one play from begin to end, and its counts
"""
