# SPDX-License-Identifier: GPL-2.0-or-later
"""Floor 2: pure functions on those nouns: no file, no socket, no clock."""
