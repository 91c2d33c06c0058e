# SPDX-License-Identifier: GPL-2.0-or-later
"""What `pytest --testinfra` runs: the tests themselves (checks.py) and what they share (engine.py)."""
