# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT whose QEMU is arm64 code: its figures have to be those of an amd64 host."""
