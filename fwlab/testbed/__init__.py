# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of a lab: testbeds, link kinds, what `vagrant up` made, throttling, saved states."""
