# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab prices state, so the DUT must have none at the start: not even the module that would track."""


def test_nothing_tracks_connections_at_the_start(dut):
    assert not dut.file("/proc/sys/net/netfilter/nf_conntrack_max").exists
