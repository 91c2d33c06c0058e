# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the zip application begins."""

from fwlab.outside.dut.agent.serving import main

main()
