# SPDX-License-Identifier: GPL-2.0-or-later
"""The generator and the sink: engines that send a lab's traffic, and the counters at the other end."""
