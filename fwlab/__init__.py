# SPDX-License-Identifier: GPL-2.0-or-later
"""Firewall Performance Lab: measure, judge and teach what a firewall rule costs."""

#: The only place: pyproject.toml reads it.
__version__ = "0.1.0"
