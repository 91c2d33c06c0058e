# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the zip application begins."""

from fwlab.dut.linux.agent.rpc import main

main()
