# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent: runs on the Linux DUT, as root, with Python's standard library only; the host sends it there.

It travels as one zip application (../parcel.py) in which these modules keep their names, so they import each other
and nothing else of this project. One request a line on standard input, one answer a line on standard output, both
JSON. It is started before the traffic, because a saturated DUT answers a new SSH connection too late. All times are
the DUT's own clock, which on the virtual testbed counts instructions.
"""
