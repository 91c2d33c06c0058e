# SPDX-License-Identifier: GPL-2.0-or-later
"""What links need on the host before machines start, and how the host gets back to what it was."""
