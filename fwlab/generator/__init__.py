# SPDX-License-Identifier: GPL-2.0-or-later
"""The generator and the sink: the engines that play a traffic profile, and what counts the other end."""
