# SPDX-License-Identifier: GPL-2.0-or-later
"""A student's way through a lab: progress, hints, explanations, solutions, the page's questions, the workbook."""
