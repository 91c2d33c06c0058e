# SPDX-License-Identifier: GPL-2.0-or-later
"""The field's nouns as data: topology, lab, case, trial, results, verdict. No file, no socket, no clock."""
