# SPDX-License-Identifier: GPL-2.0-or-later
"""A modelled core that watches the DUT: what a packet would wait for on a CPU with caches, TLBs and predictors."""
