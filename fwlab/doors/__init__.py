# SPDX-License-Identifier: GPL-2.0-or-later
"""Floor 5: the doors: the command line and the pytest plugin."""
