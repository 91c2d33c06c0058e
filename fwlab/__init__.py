# SPDX-License-Identifier: GPL-2.0-or-later
"""Firewall Performance Lab: measure, judge and teach what a firewall rule costs."""

#: Of a checkout. `make release` puts the name of the commit's tag in its place, and pyproject.toml reads it from here.
__version__ = "0.dev0"
