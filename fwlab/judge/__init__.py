# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics and verdicts: pure functions of results and expectations."""
