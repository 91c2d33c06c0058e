# SPDX-License-Identifier: GPL-2.0-or-later
"""Alone in its file: the plugin needs it at every start of pytest, and the tests need it below the plugin."""

from __future__ import annotations


class Inconclusive(Exception):
    """Could not be measured: the plugin reports the test as skipped, with this reason."""
