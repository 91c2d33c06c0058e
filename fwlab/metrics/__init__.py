# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured, metrics that one measurement gives in one file, and what the measurements share."""
