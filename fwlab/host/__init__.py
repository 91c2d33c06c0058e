# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that all of this runs on: its files, processes and SSH client, and whether its KVM works."""
