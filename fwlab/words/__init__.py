# SPDX-License-Identifier: GPL-2.0-or-later
"""Floor 1: the nouns of the field as data. Imports nothing of fwlab but its own floor."""
