# SPDX-License-Identifier: GPL-2.0-or-later
"""The device under test: one package for each operating system."""
