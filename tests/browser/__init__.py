# SPDX-License-Identifier: GPL-2.0-or-later
"""The site and the reports as a reader sees them, in headless Chromium."""
