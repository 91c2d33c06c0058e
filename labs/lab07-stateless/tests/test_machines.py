# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab counts who finds room in a table, so no connection may be in it at the start."""


def test_there_is_no_table_of_connections_at_the_start(dut):
    assert not dut.file("/proc/net/nf_conntrack").exists
