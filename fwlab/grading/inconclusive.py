# SPDX-License-Identifier: GPL-2.0-or-later
"""The exception for what could not be measured. A module of its own: the plugin needs it whenever pytest starts."""


class Inconclusive(Exception):
    """Nothing can be said about the check. The plugin reports the test as skipped, with this reason."""
