# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as people read it: one model of the run (model.py), and renderers that turn it into text (renderers/)."""
