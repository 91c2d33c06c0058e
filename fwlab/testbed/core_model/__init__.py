# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of a reference core: builds it (model/), attaches it to the DUT's QEMU, reads its counters."""
