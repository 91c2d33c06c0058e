# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic: expands TRex streams into frames and assigns frames to traffic classes. Pure functions, no I/O."""

from fwlab.traffic.expand import DEFAULT_LIMIT, expand
from fwlab.traffic.frames import Frames

__all__ = ["DEFAULT_LIMIT", "Frames", "expand"]
