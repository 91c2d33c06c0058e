# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent: runs on a Linux DUT as root, with Python's standard library only. The host sends it there.

It travels as one archive (../client.py) together with the kinds of ruleset files. It reads one request a line
from standard input and writes one answer a line to standard output, both in JSON. It is started before the traffic,
because a saturated DUT accepts a new SSH connection too late. All times are of the DUT's own clock, which counts
instructions on the virtual testbed.
"""
