# SPDX-License-Identifier: GPL-2.0-or-later
"""What writes the pages, publishes results and measures the project itself. Run from the checkout, never installed."""
