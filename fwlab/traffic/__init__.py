# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic: TRex streams to frames, and frames to classes. Pure."""

from fwlab.traffic.expand import DEFAULT_LIMIT, expand
from fwlab.traffic.frames import Frames

__all__ = ["DEFAULT_LIMIT", "Frames", "expand"]
