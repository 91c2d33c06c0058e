# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of a lab: which testbed, how they were made, how they are slowed down and put back."""
