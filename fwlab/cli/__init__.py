# SPDX-License-Identifier: GPL-2.0-or-later
"""The command `fwlab`, and the pytest plugin."""
