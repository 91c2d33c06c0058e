# SPDX-License-Identifier: GPL-2.0-or-later
"""The command `fwlab`, and the pytest plugin."""

#: Exit code of a command that was interrupted: 128 + SIGINT, as in shells.
EXIT_INTERRUPTED = 130
