# SPDX-License-Identifier: GPL-2.0-or-later
"""What `pytest --testinfra` runs: the tests themselves (test_lab.py) and what they share (classroom.py)."""
