# SPDX-License-Identifier: GPL-2.0-or-later
"""The testbeds that come with fwlab, one module each. Others come from entry points (see testbeds.py)."""
