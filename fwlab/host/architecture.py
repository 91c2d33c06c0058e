# SPDX-License-Identifier: GPL-2.0-or-later
"""The architecture of the boxes, and whether this host's is another: it then emulates them, and cannot build them."""

import platform

BOXES = "x86_64"


def other_architecture() -> str:
    """This host's architecture as the kernel names it ("aarch64"), if it is not that of the boxes; else empty."""
    machine = platform.machine()
    return "" if machine in (BOXES, "amd64") else machine
