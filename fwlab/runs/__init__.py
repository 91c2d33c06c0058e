# SPDX-License-Identifier: GPL-2.0-or-later
"""Floor 4: what strings them together: a session, a grading, a report."""
