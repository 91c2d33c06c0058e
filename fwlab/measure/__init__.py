# SPDX-License-Identifier: GPL-2.0-or-later
"""From a plan to a run: the session that takes each case through loading and its trials."""
