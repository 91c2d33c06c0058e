# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkout: where its files are, how they are read, and how files are written."""
