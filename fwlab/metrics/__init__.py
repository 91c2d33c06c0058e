# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured, one file a metric, and what the measurements share."""
