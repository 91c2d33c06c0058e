# SPDX-License-Identifier: GPL-2.0-or-later
"""The link kinds that come with fwlab, one module each. Others come from entry points (see link_kinds.py)."""
