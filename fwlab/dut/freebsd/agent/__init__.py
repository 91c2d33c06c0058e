# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent: runs on a FreeBSD DUT as root, with what its base system has: flua, sysctl(8), pfctl(8).

The host sends it there as one Lua program (../client.py). It answers the same requests as the agent on Linux.
"""
