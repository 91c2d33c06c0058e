# SPDX-License-Identifier: GPL-2.0-or-later
"""What engine/bench is made of."""
